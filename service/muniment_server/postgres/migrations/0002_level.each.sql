-- The tables of one level, and its windows on what hosts manage. Applied once for each level.

CREATE SCHEMA muniment_{level};
SET LOCAL search_path = muniment_{level};

-- The live version of everything remembered at this level.
CREATE TABLE item (
    tenant      bigint      NOT NULL,
    agent       bigint      NOT NULL,
    kind        smallint    NOT NULL CONSTRAINT kind_is_known CHECK (kind BETWEEN 1 AND 4), -- memory, note, block, passage
    name        text COLLATE "C" NOT NULL,
    level       smallint    NOT NULL DEFAULT {number} CONSTRAINT item_is_{level} CHECK (level = {number}),
    item_id     uuid        NOT NULL,
    revision    integer     NOT NULL DEFAULT 1,
    change_id   uuid        NOT NULL, -- the audit event of the last change
    tier        smallint    NOT NULL DEFAULT 1 CONSTRAINT only_notes_have_a_second_tier CHECK (tier = 1 OR kind = 2 AND tier = 2),
    content     text        NOT NULL CONSTRAINT only_blocks_may_be_empty CHECK (content <> '' OR kind = 3),
    tags        text[]      NOT NULL DEFAULT '{}',
    thread      text COLLATE "C",
    author      text,
    event_time  timestamptz,
    create_time timestamptz NOT NULL DEFAULT vault.clock(),
    update_time timestamptz NOT NULL DEFAULT vault.clock(),
    expire_time timestamptz CONSTRAINT only_memories_and_passages_expire CHECK (expire_time IS NULL OR kind IN (1, 4)),
    delete_time timestamptz,
    search      tsvector    GENERATED ALWAYS AS (to_tsvector('pg_catalog.english', name || ' ' || content)) STORED,
    PRIMARY KEY (tenant, agent, item_id),
    FOREIGN KEY (tenant, agent) REFERENCES vault.agent ON DELETE CASCADE,
    CONSTRAINT expires_after_it_is_written CHECK (expire_time > update_time),
    CONSTRAINT passages_have_an_event_time CHECK ((kind = 4) = (event_time IS NOT NULL)),
    CONSTRAINT only_passages_have_thread_and_author CHECK (kind = 4 OR thread IS NULL AND author IS NULL)
);
CREATE UNIQUE INDEX item_live ON item (tenant, agent, kind, name, level DESC) WHERE delete_time IS NULL;
CREATE INDEX item_passages ON item (tenant, agent, event_time DESC, create_time DESC, name DESC) WHERE kind = 4 AND delete_time IS NULL;
CREATE INDEX item_search ON item USING gin (search) WHERE delete_time IS NULL;

-- The ledger: every version of every memory, note and block, the live one included.
CREATE TABLE revision (
    tenant      bigint      NOT NULL,
    agent       bigint      NOT NULL,
    item_id     uuid        NOT NULL,
    revision    integer     NOT NULL,
    change_id   uuid        NOT NULL,
    kind        smallint    NOT NULL,
    name        text COLLATE "C" NOT NULL,
    content     text        NOT NULL,
    tags        text[]      NOT NULL,
    update_time timestamptz NOT NULL,
    expire_time timestamptz,
    PRIMARY KEY (tenant, agent, item_id, revision),
    FOREIGN KEY (tenant, agent) REFERENCES vault.agent ON DELETE CASCADE
);

-- One row per agent: who must judge several items before writing locks it first.
CREATE TABLE shelf (
    tenant bigint   NOT NULL,
    agent  bigint   NOT NULL,
    fence  smallint NOT NULL DEFAULT 0, -- UPDATE on it is the right to lock
    PRIMARY KEY (tenant, agent),
    FOREIGN KEY (tenant, agent) REFERENCES vault.agent ON DELETE CASCADE
);

-- What sessions did at this level. No foreign key: it outlives what it names.
CREATE TABLE audit (
    tenant       bigint      NOT NULL,
    agent        bigint      NOT NULL,
    level        smallint    NOT NULL DEFAULT {number} CONSTRAINT audit_is_{level} CHECK (level = {number}),
    event_id     uuid        NOT NULL,
    time         timestamptz NOT NULL DEFAULT vault.clock(),
    written_by   xid8        NOT NULL DEFAULT pg_current_xact_id(),
    session_id   uuid        NOT NULL,
    method       text        NOT NULL,
    outcome      text        NOT NULL,
    kind         smallint,
    item_id      uuid,
    revision     integer,
    result_count integer,
    PRIMARY KEY (tenant, event_id)
);
CREATE INDEX audit_newest ON audit (tenant, time DESC, event_id DESC);

-- Open sessions of conversations at this level. Its FROM fixes the order of locks: conversation, session.
CREATE VIEW session WITH (security_barrier = true) AS
SELECT session.tenant, session.agent, session.session_id, session.conversation_id, conversation.taint,
       session.create_time, session.expire_time,
       0 AS fence -- UPDATE on it is the right to lock
  FROM vault.conversation
       JOIN vault.session USING (tenant, agent, conversation_id)
 WHERE conversation.taint = {number}
   AND session.close_time IS NULL
   AND session.expire_time > vault.clock();

-- The settings of a session's agent.
CREATE VIEW agent WITH (security_barrier = true) AS
SELECT session.tenant, session.session_id, agent.agent_id, agent.language,
       agent.memory_enabled, agent.user_profile_enabled, agent.memory_char_limit, agent.user_char_limit
  FROM session
       JOIN vault.agent USING (tenant, agent);

-- The blocks that other agents share with a session's agent: names only.
CREATE VIEW link WITH (security_barrier = true) AS
SELECT session.tenant, session.session_id, block_link.owner, block_link.label, agent.agent_id AS owner_agent_id
  FROM session
       JOIN vault.block_link ON (block_link.tenant, block_link.consumer) = (session.tenant, session.agent)
       JOIN vault.agent ON (agent.tenant, agent.agent) = (block_link.tenant, block_link.owner);

GRANT USAGE ON SCHEMA vault, muniment_{level} TO muniment_{level};
GRANT SELECT ON session, agent, link TO muniment_{level};
GRANT UPDATE (fence) ON session TO muniment_{level};
GRANT SELECT, INSERT,
      UPDATE (item_id, revision, change_id, content, tags, create_time, update_time, expire_time, delete_time)
   ON item TO muniment_{level};
GRANT INSERT ON revision, audit TO muniment_{level};
GRANT SELECT, UPDATE (fence) ON shelf TO muniment_{level};

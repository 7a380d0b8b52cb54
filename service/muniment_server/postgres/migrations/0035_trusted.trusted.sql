-- The tables of one level for what only trusted contexts wrote, and its windows on what hosts manage. Empty at first: everything
-- that exists is untrusted. As the tables of the untrusted label of the same level are after 34 migrations.
-- Older servers would open sessions that do not say whether they are trusted: none may go on.

CREATE SCHEMA muniment_{label};
SET LOCAL search_path = muniment_{label};

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
    PRIMARY KEY (tenant, agent, item_id),
    FOREIGN KEY (tenant, agent) REFERENCES vault.agent ON DELETE CASCADE,
    CONSTRAINT expires_after_it_is_written CHECK (expire_time > update_time),
    CONSTRAINT passages_have_an_event_time CHECK ((kind = 4) = (event_time IS NOT NULL)),
    CONSTRAINT only_passages_have_thread_and_author CHECK (kind = 4 OR thread IS NULL AND author IS NULL)
);
CREATE UNIQUE INDEX item_live ON item (tenant, agent, kind, name, level DESC) WHERE delete_time IS NULL;
CREATE INDEX item_passages ON item (tenant, agent, event_time DESC, create_time DESC, name DESC) WHERE kind = 4 AND delete_time IS NULL;

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

CREATE TABLE shelf (
    tenant bigint   NOT NULL,
    agent  bigint   NOT NULL,
    fence  smallint NOT NULL DEFAULT 0, -- UPDATE on it is the right to lock
    PRIMARY KEY (tenant, agent),
    FOREIGN KEY (tenant, agent) REFERENCES vault.agent ON DELETE CASCADE
);
INSERT INTO shelf (tenant, agent)
SELECT agent.tenant, agent.agent
  FROM vault.agent;

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
    PRIMARY KEY (tenant, event_id),
    CONSTRAINT time_is_finite CHECK (time > '2000-01-01' AND time < '9000-01-01')
);
CREATE INDEX audit_newest ON audit (tenant, time DESC, event_id DESC);

CREATE TABLE chunk (
    tenant      bigint      NOT NULL,
    agent       bigint      NOT NULL,
    kind        smallint    NOT NULL CONSTRAINT blocks_are_not_searched CHECK (kind IN (1, 2, 4)),
    name        text COLLATE "C" NOT NULL,
    level       smallint    NOT NULL DEFAULT {number} CONSTRAINT chunk_is_{level} CHECK (level = {number}),
    change_id   uuid        NOT NULL,
    piece       integer     NOT NULL,
    is_whole    boolean     NOT NULL,
    start       integer     NOT NULL,
    size        integer     NOT NULL,
    tier        smallint    NOT NULL,
    tags        text[]      NOT NULL,
    thread      text COLLATE "C",
    place       text COLLATE "C",
    event_time  timestamptz,
    expire_time timestamptz,
    sample      integer     NOT NULL,
    language    text COLLATE "C" NOT NULL,
    stems       tsvector    NOT NULL,
    grams       tsvector    NOT NULL,
    stem_count  integer     NOT NULL,
    gram_count  integer     NOT NULL,
    PRIMARY KEY (tenant, agent, kind, name, change_id, piece),
    FOREIGN KEY (tenant, agent) REFERENCES vault.agent ON DELETE CASCADE
) WITH (toast_tuple_target = 8160);
CREATE INDEX chunk_stems ON chunk USING gin (stems);
CREATE INDEX chunk_grams ON chunk USING gin (grams);
CREATE INDEX chunk_sample ON chunk (tenant, agent, kind, sample) WHERE start >= 0;
CREATE INDEX chunk_thread ON chunk (tenant, agent, thread, place) WHERE thread IS NOT NULL AND piece = 0;

CREATE TABLE stat (
    tenant    bigint   NOT NULL,
    agent     bigint   NOT NULL,
    kind      smallint NOT NULL,
    language  text COLLATE "C" NOT NULL,
    change_id uuid     NOT NULL,
    chunks    bigint   NOT NULL,
    stems     bigint   NOT NULL,
    grams     bigint   NOT NULL,
    fence     smallint NOT NULL DEFAULT 0, -- UPDATE on it is the right to lock
    PRIMARY KEY (tenant, agent, kind, language, change_id),
    FOREIGN KEY (tenant, agent) REFERENCES vault.agent ON DELETE CASCADE
);

-- No list of another label has the number of one of these, so they are negative.
CREATE TABLE embedding_list (
    tenant     bigint   NOT NULL,
    agent      bigint   NOT NULL,
    kind       smallint NOT NULL,
    level      smallint NOT NULL DEFAULT {number} CONSTRAINT embedding_list_is_{level} CHECK (level = {number}),
    embedder   smallint NOT NULL,
    number     integer  NOT NULL CONSTRAINT no_other_label_has_the_number CHECK (number < 0 AND -number % 4 = {number} % 4),
    signs      bit(384),
    version    integer  NOT NULL DEFAULT 0,
    is_retired boolean  NOT NULL DEFAULT FALSE,
    PRIMARY KEY (tenant, agent, kind, embedder, number),
    FOREIGN KEY (tenant, agent) REFERENCES vault.agent ON DELETE CASCADE
);

CREATE TABLE meaning (
    tenant    bigint   NOT NULL,
    agent     bigint   NOT NULL,
    kind      smallint NOT NULL,
    name      text COLLATE "C" NOT NULL,
    level     smallint NOT NULL DEFAULT {number} CONSTRAINT meaning_is_{level} CHECK (level = {number}),
    change_id uuid     NOT NULL,
    piece     integer  NOT NULL,
    prior     uuid,
    embedder  smallint,
    signs     bit(384),
    vector    smallint[],
    list      integer,
    PRIMARY KEY (tenant, agent, kind, name, change_id, piece),
    FOREIGN KEY (tenant, agent, kind, name, change_id, piece) REFERENCES chunk ON DELETE CASCADE,
    CONSTRAINT list_exists FOREIGN KEY (tenant, agent, kind, embedder, list) REFERENCES embedding_list,
    CONSTRAINT meaning_waits_or_is_whole CHECK (num_nulls(embedder, signs, vector) IN (0, 3))
);
CREATE INDEX meaning_waiting ON meaning (tenant, agent, kind, name, change_id, piece) WHERE embedder IS NULL;
CREATE INDEX meaning_prior ON meaning (tenant, agent, prior) WHERE prior IS NOT NULL;
CREATE INDEX meaning_signs ON meaning (tenant, agent, kind, embedder, list) INCLUDE (signs, name, level, change_id, piece)
 WHERE embedder IS NOT NULL;

CREATE TABLE remote_embedding (
    tenant     bigint   NOT NULL,
    agent      bigint   NOT NULL,
    kind       smallint NOT NULL,
    name       text COLLATE "C" NOT NULL,
    level      smallint NOT NULL DEFAULT {number} CONSTRAINT remote_embedding_is_{level} CHECK (level = {number}),
    change_id  uuid     NOT NULL,
    number     integer  NOT NULL,
    model      integer  NOT NULL,
    is_missing boolean  NOT NULL,
    prior_name text COLLATE "C",
    signs      bit varying,
    vector     smallint[],
    PRIMARY KEY (tenant, agent, kind, name, change_id, number, model),
    FOREIGN KEY (tenant, agent, kind, name, change_id, number)
        REFERENCES meaning (tenant, agent, kind, name, change_id, piece) ON DELETE CASCADE,
    CONSTRAINT remote_embedding_waits_or_is_whole CHECK (num_nulls(signs, vector) IN (0, 2))
);
CREATE INDEX remote_embedding_waiting ON remote_embedding (tenant, agent, kind, model, name, change_id, number)
 WHERE signs IS NULL AND NOT is_missing;
CREATE INDEX remote_embedding_missing ON remote_embedding (tenant, agent, kind, model, name, change_id, number)
 WHERE signs IS NULL AND is_missing;
CREATE INDEX remote_embedding_prior ON remote_embedding (tenant, agent, kind, prior_name) WHERE prior_name IS NOT NULL;
CREATE INDEX remote_embedding_signs ON remote_embedding (tenant, agent, kind, model) INCLUDE (signs, name, level, change_id, number)
 WHERE signs IS NOT NULL;

CREATE TABLE storage (
    tenant    bigint   NOT NULL,
    agent     bigint   NOT NULL,
    change_id uuid     NOT NULL,
    items     bigint   NOT NULL,
    versions  bigint   NOT NULL,
    bytes     bigint   NOT NULL,
    fence     smallint NOT NULL DEFAULT 0, -- UPDATE on it is the right to lock
    PRIMARY KEY (tenant, agent, change_id)
);

CREATE VIEW storage_size WITH (security_invoker = true) AS
SELECT storage.tenant, storage.agent, storage.items, storage.bytes + 256 * storage.versions AS bytes
  FROM storage
 UNION ALL
SELECT stat.tenant, stat.agent, 0, 1500 * stat.chunks + 20 * stat.stems + 20 * stat.grams
  FROM stat;

CREATE VIEW deleted_item WITH (security_barrier = true) AS
SELECT item.tenant, item.agent, item.kind, item.name, item.item_id, item.revision, item.tier, item.content, item.tags,
       item.thread, item.author, item.event_time, item.create_time, item.expire_time, item.delete_time
  FROM item
 WHERE item.delete_time IS NOT NULL;

-- What the eraser may delete of deleted agents.
CREATE VIEW erasable_item WITH (security_barrier = true) AS
SELECT item.ctid AS address, item.tenant, item.agent, item.item_id
  FROM item
 WHERE EXISTS (
           SELECT
             FROM vault.agent
            WHERE (agent.tenant, agent.agent) = (item.tenant, item.agent)
              AND agent.delete_time IS NOT NULL
       );

CREATE VIEW erasable_revision WITH (security_barrier = true) AS
SELECT revision.ctid AS address, revision.tenant, revision.agent, revision.item_id, revision.revision
  FROM revision
 WHERE EXISTS (
           SELECT
             FROM vault.agent
            WHERE (agent.tenant, agent.agent) = (revision.tenant, revision.agent)
              AND agent.delete_time IS NOT NULL
       );

CREATE VIEW erasable_chunk WITH (security_barrier = true) AS
SELECT chunk.ctid AS address, chunk.tenant, chunk.agent, chunk.kind, chunk.sample
  FROM chunk
 WHERE EXISTS (
           SELECT
             FROM vault.agent
            WHERE (agent.tenant, agent.agent) = (chunk.tenant, chunk.agent)
              AND agent.delete_time IS NOT NULL
       );

CREATE VIEW erasable_stat WITH (security_barrier = true) AS
SELECT stat.ctid AS address, stat.tenant, stat.agent, stat.kind, stat.language, stat.change_id
  FROM stat
 WHERE EXISTS (
           SELECT
             FROM vault.agent
            WHERE (agent.tenant, agent.agent) = (stat.tenant, stat.agent)
              AND agent.delete_time IS NOT NULL
       );

CREATE VIEW erasable_storage WITH (security_barrier = true) AS
SELECT storage.ctid AS address, storage.tenant, storage.agent, storage.change_id
  FROM storage
 WHERE EXISTS (
           SELECT
             FROM vault.agent
            WHERE (agent.tenant, agent.agent) = (storage.tenant, storage.agent)
              AND agent.delete_time IS NOT NULL
       );

-- What the eraser may see and delete of live agents, by the orders of hosts: names, tags and sizes, and no content.
CREATE VIEW erasing_item WITH (security_barrier = true) AS
SELECT item.tenant, item.agent, item.kind, item.name, item.item_id, item.revision, item.change_id, item.tags,
       item.delete_time, octet_length(item.content) AS bytes,
       0 AS fence -- UPDATE on it is the right to lock
  FROM item
 WHERE EXISTS (
           SELECT
             FROM vault.erasure
            WHERE (erasure.tenant, erasure.agent, erasure.kind) = (item.tenant, item.agent, item.kind)
              AND erasure.ceiling >= {number}
       );

CREATE VIEW erasing_revision WITH (security_barrier = true) AS
SELECT revision.tenant, revision.agent, revision.kind, revision.name, revision.item_id, revision.revision, revision.tags,
       octet_length(revision.content) AS bytes
  FROM revision
 WHERE EXISTS (
           SELECT
             FROM vault.erasure
            WHERE (erasure.tenant, erasure.agent, erasure.kind) = (revision.tenant, revision.agent, revision.kind)
              AND erasure.ceiling >= {number}
       );

CREATE VIEW erasing_chunk WITH (security_barrier = true) AS
SELECT chunk.tenant, chunk.agent, chunk.kind, chunk.name, chunk.change_id, chunk.language, chunk.stem_count, chunk.gram_count
  FROM chunk
 WHERE EXISTS (
           SELECT
             FROM vault.erasure
            WHERE (erasure.tenant, erasure.agent, erasure.kind) = (chunk.tenant, chunk.agent, chunk.kind)
              AND erasure.ceiling >= {number}
       );

CREATE VIEW erasing_stat WITH (security_barrier = true) AS
SELECT stat.tenant, stat.agent, stat.kind, stat.language, stat.change_id, stat.chunks, stat.stems, stat.grams
  FROM stat
 WHERE EXISTS (
           SELECT
             FROM vault.erasure
            WHERE (erasure.tenant, erasure.agent, erasure.kind) = (stat.tenant, stat.agent, stat.kind)
              AND erasure.ceiling >= {number}
       )
  WITH CHECK OPTION;

CREATE VIEW erasing_storage WITH (security_barrier = true) AS
SELECT storage.tenant, storage.agent, storage.change_id, storage.items, storage.versions, storage.bytes
  FROM storage
 WHERE EXISTS (
           SELECT
             FROM vault.erasure
            WHERE (erasure.tenant, erasure.agent) = (storage.tenant, storage.agent)
              AND erasure.ceiling >= {number}
       )
  WITH CHECK OPTION;

CREATE VIEW erasing_embedding WITH (security_barrier = true) AS
SELECT meaning.tenant, meaning.agent, meaning.kind, meaning.prior, meaning.embedder, meaning.signs, meaning.vector, meaning.list
  FROM meaning
 WHERE EXISTS (
           SELECT
             FROM vault.erasure
            WHERE (erasure.tenant, erasure.agent, erasure.kind) = (meaning.tenant, meaning.agent, meaning.kind)
              AND erasure.ceiling >= {number}
       );

CREATE VIEW erasing_embedding_list WITH (security_barrier = true) AS
SELECT embedding_list.tenant, embedding_list.agent, embedding_list.kind, embedding_list.embedder, embedding_list.number,
       embedding_list.signs, embedding_list.version
  FROM embedding_list
 WHERE EXISTS (
           SELECT
             FROM vault.erasure
            WHERE (erasure.tenant, erasure.agent, erasure.kind)
                  = (embedding_list.tenant, embedding_list.agent, embedding_list.kind)
              AND erasure.ceiling >= {number}
       );

CREATE VIEW erasing_remote_embedding WITH (security_barrier = true) AS
SELECT remote_embedding.tenant, remote_embedding.agent, remote_embedding.kind, remote_embedding.prior_name
  FROM remote_embedding
 WHERE EXISTS (
           SELECT
             FROM vault.erasure
            WHERE (erasure.tenant, erasure.agent, erasure.kind)
                  = (remote_embedding.tenant, remote_embedding.agent, remote_embedding.kind)
              AND erasure.ceiling >= {number}
       );

GRANT USAGE ON SCHEMA muniment_{label} TO muniment_{label}, muniment_control, muniment_auditor, muniment_eraser;
GRANT USAGE ON SCHEMA vault TO muniment_{label};

GRANT INSERT,
      UPDATE (item_id, revision, change_id, content, tags, create_time, update_time, expire_time, delete_time)
   ON item TO muniment_{label};
GRANT INSERT ON revision, audit TO muniment_{label};
GRANT SELECT, UPDATE (fence) ON shelf TO muniment_{label};
GRANT INSERT, DELETE ON chunk TO muniment_{label};
GRANT INSERT, DELETE, UPDATE (fence) ON stat TO muniment_{label};
GRANT INSERT, UPDATE (prior, embedder, signs, vector, list) ON meaning TO muniment_{label};
GRANT INSERT, DELETE, UPDATE (prior_name, signs, vector) ON remote_embedding TO muniment_{label};
GRANT INSERT, DELETE, UPDATE (signs, version, is_retired) ON embedding_list TO muniment_{label};
GRANT SELECT, INSERT, DELETE, UPDATE (fence) ON storage TO muniment_{label};
GRANT SELECT ON storage_size TO muniment_{label};
GRANT SELECT, DELETE ON deleted_item TO muniment_{label};

GRANT INSERT ON shelf TO muniment_control;
GRANT SELECT ON storage, storage_size TO muniment_control;
GRANT SELECT (tenant, agent, chunks, stems, grams) ON stat TO muniment_control;
GRANT SELECT ON audit TO muniment_auditor;
GRANT SELECT, DELETE ON erasable_item, erasable_revision, erasable_chunk, erasable_stat, erasable_storage TO muniment_eraser;
GRANT SELECT, DELETE, UPDATE (fence) ON erasing_item TO muniment_eraser;
GRANT SELECT, DELETE ON erasing_revision, erasing_chunk, erasing_remote_embedding TO muniment_eraser;
GRANT INSERT ON erasing_stat, erasing_storage TO muniment_eraser;
GRANT SELECT (tenant, agent, kind, prior), UPDATE (prior, embedder, signs, vector, list) ON erasing_embedding TO muniment_eraser;
GRANT SELECT (tenant, agent, kind, embedder, number, version), UPDATE (signs, version)
   ON erasing_embedding_list TO muniment_eraser;

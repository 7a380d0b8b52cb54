-- What hosts manage: tenants, keys, agents, conversations and their taint, sessions, sharing.

CREATE SCHEMA vault;

-- The only source of time. Tests replace it.
CREATE FUNCTION vault.clock() RETURNS timestamptz
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN pg_catalog.now();

CREATE TABLE vault.migration (
    version    integer     NOT NULL PRIMARY KEY,
    name       text        NOT NULL,
    apply_time timestamptz NOT NULL DEFAULT pg_catalog.now()
);

CREATE TABLE vault.tenant (
    tenant bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name   text COLLATE "C" NOT NULL CONSTRAINT tenant_has_a_name CHECK (name <> '')
);

CREATE TABLE vault.host_key (
    tenant      bigint      NOT NULL REFERENCES vault.tenant,
    host_key_id uuid        NOT NULL,
    key_hash    bytea       NOT NULL,
    ceiling     smallint    NOT NULL CONSTRAINT ceiling_is_a_level CHECK (ceiling BETWEEN 1 AND 4),
    create_time timestamptz NOT NULL DEFAULT vault.clock(),
    revoke_time timestamptz,
    PRIMARY KEY (tenant, host_key_id),
    UNIQUE (tenant, key_hash)
);

CREATE TABLE vault.agent (
    tenant               bigint      NOT NULL REFERENCES vault.tenant,
    agent                bigint      NOT NULL, -- random, made by the server
    agent_id             text COLLATE "C" NOT NULL,
    display_name         text        NOT NULL,
    language             text        NOT NULL,
    memory_enabled       boolean     NOT NULL,
    user_profile_enabled boolean     NOT NULL,
    memory_char_limit    integer     NOT NULL,
    user_char_limit      integer     NOT NULL,
    create_time          timestamptz NOT NULL DEFAULT vault.clock(),
    update_time          timestamptz NOT NULL DEFAULT vault.clock(),
    delete_time          timestamptz, -- the mark of the transaction that deletes the row
    PRIMARY KEY (tenant, agent),
    UNIQUE (tenant, agent_id)
);

-- The one place where a taint is kept.
CREATE TABLE vault.conversation (
    tenant          bigint      NOT NULL,
    agent           bigint      NOT NULL,
    conversation_id text COLLATE "C" NOT NULL,
    taint           smallint    NOT NULL CONSTRAINT taint_is_a_level CHECK (taint BETWEEN 1 AND 4),
    create_time     timestamptz NOT NULL DEFAULT vault.clock(),
    PRIMARY KEY (tenant, agent, conversation_id),
    FOREIGN KEY (tenant, agent) REFERENCES vault.agent ON DELETE CASCADE
);

CREATE TABLE vault.session (
    tenant          bigint      NOT NULL,
    agent           bigint      NOT NULL,
    session_id      uuid        NOT NULL,
    conversation_id text COLLATE "C" NOT NULL,
    token_hash      bytea       NOT NULL,
    create_time     timestamptz NOT NULL DEFAULT vault.clock(),
    expire_time     timestamptz NOT NULL,
    close_time      timestamptz,
    PRIMARY KEY (tenant, session_id),
    UNIQUE (tenant, token_hash),
    FOREIGN KEY (tenant, agent, conversation_id) REFERENCES vault.conversation ON DELETE CASCADE
);
CREATE INDEX session_of_conversation ON vault.session (tenant, agent, conversation_id);
CREATE INDEX session_newest ON vault.session (tenant, agent, create_time DESC, session_id DESC);

CREATE TABLE vault.shared_block (
    tenant bigint NOT NULL,
    owner  bigint NOT NULL,
    label  text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, owner, label),
    FOREIGN KEY (tenant, owner) REFERENCES vault.agent ON DELETE CASCADE
);

CREATE TABLE vault.block_link (
    tenant   bigint NOT NULL,
    owner    bigint NOT NULL,
    label    text COLLATE "C" NOT NULL,
    consumer bigint NOT NULL CONSTRAINT nobody_consumes_its_own CHECK (consumer <> owner),
    PRIMARY KEY (tenant, consumer, owner, label),
    UNIQUE (tenant, owner, label, consumer),
    FOREIGN KEY (tenant, owner, label) REFERENCES vault.shared_block ON DELETE CASCADE,
    FOREIGN KEY (tenant, consumer) REFERENCES vault.agent ON DELETE CASCADE
);

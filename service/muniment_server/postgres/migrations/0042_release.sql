-- The release desk: what hosts ask to have released to a lower level or to TRUSTED, and which keys approve it. No text is here,
-- only the hash of one. No role of a label sees it. Older servers would erase items without stopping a release: none may go on.

ALTER TABLE vault.tenant
  ADD COLUMN release_approvals smallint NOT NULL DEFAULT 1 CONSTRAINT a_release_needs_approval CHECK (release_approvals BETWEEN 1 AND 16);

ALTER TABLE vault.host_key
  ADD COLUMN may_declassify boolean NOT NULL DEFAULT FALSE,
  ADD COLUMN may_endorse    boolean NOT NULL DEFAULT FALSE;

-- Labels have the numbers that order the versions of a name: those of trusted ones are odd.
CREATE TABLE vault.release (
    tenant       bigint      NOT NULL,
    agent        bigint      NOT NULL,
    release_id   uuid        NOT NULL, -- also the audit event of the write
    kind         smallint    NOT NULL,
    item_id      uuid        NOT NULL,
    revision     integer     NOT NULL,
    content_hash bytea       NOT NULL CONSTRAINT content_hash_is_sha256 CHECK (octet_length(content_hash) = 32),
    source       smallint    NOT NULL CONSTRAINT source_is_a_label CHECK (source BETWEEN 1 AND 8),
    target       smallint    NOT NULL CONSTRAINT target_is_a_label CHECK (target BETWEEN 1 AND 8),
    declassifies boolean     NOT NULL GENERATED ALWAYS AS ((source + 1) / 2 > (target + 1) / 2) STORED,
    endorses     boolean     NOT NULL GENERATED ALWAYS AS (source % 2 < target % 2) STORED,
    reason       text        NOT NULL,
    requester    uuid        NOT NULL,
    state        smallint    NOT NULL DEFAULT 1 CONSTRAINT state_is_known CHECK (state BETWEEN 1 AND 3), -- open, released, rejected
    refusal      text        NOT NULL DEFAULT '',
    writer       uuid, -- the session of the last attempt to write
    new_item_id  uuid,
    new_revision integer,
    create_time  timestamptz NOT NULL DEFAULT vault.clock(),
    expire_time  timestamptz NOT NULL,
    PRIMARY KEY (tenant, release_id),
    FOREIGN KEY (tenant, agent) REFERENCES vault.agent ON DELETE CASCADE,
    CONSTRAINT it_needs_a_right CHECK ((source + 1) / 2 > (target + 1) / 2 OR source % 2 < target % 2),
    CONSTRAINT what_is_released_is_written CHECK ((state = 2) = (new_item_id IS NOT NULL))
);
CREATE INDEX release_newest ON vault.release (tenant, create_time DESC, release_id DESC);
CREATE INDEX release_of_agent ON vault.release (tenant, agent);

CREATE TABLE vault.release_approval (
    tenant       bigint      NOT NULL,
    release_id   uuid        NOT NULL,
    host_key_id  uuid        NOT NULL,
    approve_time timestamptz NOT NULL DEFAULT vault.clock(),
    PRIMARY KEY (tenant, release_id, host_key_id),
    FOREIGN KEY (tenant, release_id) REFERENCES vault.release ON DELETE CASCADE
);

GRANT SELECT, INSERT, UPDATE (state, refusal, writer, new_item_id, new_revision) ON vault.release TO muniment_control;
GRANT SELECT, INSERT ON vault.release_approval TO muniment_control;

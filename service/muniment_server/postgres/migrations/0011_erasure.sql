-- oldest server: 8
-- What EraseItems is erasing: the eraser sees items of a live agent only while a host's order for their agent and kind is
-- here, at levels up to the ceiling of the host's key. An order holds no name and no tag.

CREATE TABLE vault.erasure (
    tenant      bigint      NOT NULL,
    agent       bigint      NOT NULL,
    erasure_id  uuid        NOT NULL,
    kind        smallint    NOT NULL,
    ceiling     smallint    NOT NULL,
    create_time timestamptz NOT NULL DEFAULT vault.clock(),
    PRIMARY KEY (tenant, agent, erasure_id),
    FOREIGN KEY (tenant, agent) REFERENCES vault.agent ON DELETE CASCADE
);

-- The eraser orders nothing itself.
GRANT SELECT, INSERT, DELETE ON vault.erasure TO muniment_control;
GRANT USAGE ON SCHEMA muniment_control TO muniment_eraser;
GRANT INSERT ON muniment_control.audit TO muniment_eraser;

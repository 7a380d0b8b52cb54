-- oldest server: 17
-- Audit rows stay, and are for host keys that reach the ceiling of their agent. So the eraser keeps that when it deletes the
-- agent. The ceiling of an agent that was erased before is not known any more: it is taken to be the highest.

CREATE TABLE muniment_control.erased_agent (
    tenant bigint NOT NULL REFERENCES vault.tenant,
    agent bigint NOT NULL,
    ceiling smallint NOT NULL CONSTRAINT ceiling_is_a_level CHECK (ceiling BETWEEN 1 AND 4),
    PRIMARY KEY (tenant, agent)
);

CREATE OR REPLACE VIEW muniment_eraser.agent WITH (security_barrier = true) AS
SELECT agent.tenant, agent.agent, agent.ceiling
  FROM vault.agent
 WHERE agent.delete_time IS NOT NULL;

GRANT INSERT ON muniment_control.erased_agent TO muniment_eraser;
GRANT SELECT ON muniment_control.erased_agent TO muniment_auditor;

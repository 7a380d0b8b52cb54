-- The highest level that an agent's conversations may reach, for good. It is never judged by what the agent holds: that would
-- tell a host with a lower key what is above. Agents that exist get the highest ceiling that a key of their tenant has had.

ALTER TABLE vault.agent ADD COLUMN ceiling smallint NOT NULL DEFAULT 4 CONSTRAINT ceiling_is_a_level CHECK (ceiling BETWEEN 1 AND 4);

UPDATE vault.agent
   SET ceiling = coalesce((SELECT max(host_key.ceiling) FROM vault.host_key WHERE host_key.tenant = agent.tenant), 4);

GRANT SELECT (ceiling) ON vault.agent TO muniment_auditor;

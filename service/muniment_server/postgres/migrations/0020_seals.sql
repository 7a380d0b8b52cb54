-- oldest server: 19
-- Seals of the audit log: for each tenant and level a chain, in which each seal's hash covers some events and the seal before.
-- Seals of removed events stay.

CREATE TABLE muniment_auditor.seal (
    tenant      bigint      NOT NULL, -- no foreign key, so that no lock on a tenant delays its seals
    level       smallint    NOT NULL CONSTRAINT level_is_a_level CHECK (level BETWEEN 1 AND 4),
    number      bigint      NOT NULL CONSTRAINT seals_are_counted_from_1 CHECK (number BETWEEN 1 AND 9007199254740991),
    time        timestamptz NOT NULL,
    by_host     boolean     NOT NULL, -- whether it seals events of hosts and operators, or of sessions
    event_count bigint      NOT NULL CONSTRAINT it_seals_an_event CHECK (event_count >= 1), -- up to and including this seal
    events_hash bytea       NOT NULL,
    hash        bytea       NOT NULL,
    PRIMARY KEY (tenant, level, number)
);

-- Which seal covers an event. Other tables have the events of hosts than those of sessions.
CREATE TABLE muniment_auditor.sealed_event (
    tenant   bigint   NOT NULL,
    level    smallint NOT NULL CONSTRAINT level_is_a_level CHECK (level BETWEEN 1 AND 4),
    number   bigint   NOT NULL,
    by_host  boolean  NOT NULL,
    event_id uuid     NOT NULL,
    PRIMARY KEY (tenant, by_host, event_id),
    FOREIGN KEY (tenant, level, number) REFERENCES muniment_auditor.seal
);
CREATE INDEX sealed_event_of_seal ON muniment_auditor.sealed_event (tenant, level, number, by_host, event_id);

CREATE OR REPLACE VIEW muniment_auditor.audit WITH (security_invoker = true) AS
SELECT tenant, agent, level, event_id, time, NULL::uuid AS host_key_id, session_id, method, outcome, kind, item_id,
       revision, result_count, NULL::text AS reason, false AS by_host
  FROM muniment_public.audit
 UNION ALL
SELECT tenant, agent, level, event_id, time, NULL::uuid, session_id, method, outcome, kind, item_id, revision, result_count, NULL, false
  FROM muniment_internal.audit
 UNION ALL
SELECT tenant, agent, level, event_id, time, NULL::uuid, session_id, method, outcome, kind, item_id, revision, result_count, NULL, false
  FROM muniment_confidential.audit
 UNION ALL
SELECT tenant, agent, level, event_id, time, NULL::uuid, session_id, method, outcome, kind, item_id, revision, result_count, NULL, false
  FROM muniment_restricted.audit
 UNION ALL
SELECT tenant, agent, level, event_id, time, host_key_id, session_id, method, outcome, kind, item_id, revision, NULL::integer, reason, true
  FROM muniment_control.audit;

-- A time that no client can read would stop the sealing.
ALTER TABLE muniment_public.audit ADD CONSTRAINT time_is_finite CHECK (time > '2000-01-01' AND time < '9000-01-01') NOT VALID;
ALTER TABLE muniment_internal.audit ADD CONSTRAINT time_is_finite CHECK (time > '2000-01-01' AND time < '9000-01-01') NOT VALID;
ALTER TABLE muniment_confidential.audit ADD CONSTRAINT time_is_finite CHECK (time > '2000-01-01' AND time < '9000-01-01') NOT VALID;
ALTER TABLE muniment_restricted.audit ADD CONSTRAINT time_is_finite CHECK (time > '2000-01-01' AND time < '9000-01-01') NOT VALID;
ALTER TABLE muniment_control.audit ADD CONSTRAINT time_is_finite CHECK (time > '2000-01-01' AND time < '9000-01-01') NOT VALID;

GRANT SELECT, INSERT ON muniment_auditor.seal, muniment_auditor.sealed_event TO muniment_auditor;
GRANT SELECT (tenant) ON vault.tenant TO muniment_auditor;

-- What keeps the levels apart on a Citus cluster, beside the grants on items. Views cannot have their owner's rights
-- there, because a node connects to the others as the role that connected to it. On a cluster, `muniment migrate` runs
-- this and on_cluster.labels.sql whenever it has changed the schema. Row policies compare with constants, so that no
-- setting changes what they show.

ALTER TABLE vault.conversation ENABLE ROW LEVEL SECURITY;
ALTER TABLE vault.session ENABLE ROW LEVEL SECURITY;

DROP POLICY IF EXISTS hosts ON vault.conversation;
DROP POLICY IF EXISTS hosts ON vault.session;

CREATE POLICY hosts ON vault.conversation TO muniment_control, muniment_eraser USING (TRUE);
CREATE POLICY hosts ON vault.session TO muniment_control, muniment_eraser, muniment_auditor USING (TRUE);

-- The eraser finds rows in its views and deletes them from the tables, since Citus cannot change rows through a view.
GRANT USAGE ON SCHEMA vault TO muniment_eraser;
GRANT SELECT (tenant, agent, ceiling, delete_time), DELETE ON vault.agent TO muniment_eraser;
GRANT SELECT (ctid, tenant, agent, conversation_id), DELETE ON vault.conversation TO muniment_eraser;
GRANT SELECT (ctid, tenant, agent, session_id, create_time), DELETE ON vault.session TO muniment_eraser;
GRANT SELECT (tenant, host_key_id, revoke_time, freeze_time, expire_time) ON vault.host_key TO muniment_eraser;
GRANT SELECT (tenant, agent, kind, ceiling) ON vault.erasure TO muniment_eraser;

ALTER VIEW muniment_eraser.agent SET (security_invoker = true);
ALTER VIEW muniment_eraser.session SET (security_invoker = true);
ALTER VIEW muniment_eraser.conversation SET (security_invoker = true);
ALTER VIEW muniment_eraser.host_key SET (security_invoker = true);

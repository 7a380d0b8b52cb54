-- What keeps the levels apart on a Citus cluster beside the grants on items, where views cannot have the rights of their owner:
-- a node asks the others as the role that asks it. `muniment migrate` runs this there, and on_cluster.each.sql, whenever it has
-- changed the schema. Row policies compare with constants, so that no setting changes what they show.

ALTER TABLE vault.conversation ENABLE ROW LEVEL SECURITY;
ALTER TABLE vault.session ENABLE ROW LEVEL SECURITY;

DROP POLICY IF EXISTS hosts ON vault.conversation;
DROP POLICY IF EXISTS hosts ON vault.session;

CREATE POLICY hosts ON vault.conversation TO muniment_control USING (TRUE);
CREATE POLICY hosts ON vault.session TO muniment_control USING (TRUE);

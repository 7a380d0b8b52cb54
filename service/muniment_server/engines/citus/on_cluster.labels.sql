-- The rights of one level on the tables that its views read. A level also sees the sessions that were opened at lower
-- levels, the settings of all agents, and which blocks are shared: see ADR 14.

DROP POLICY IF EXISTS {label} ON vault.conversation;
DROP POLICY IF EXISTS {label} ON vault.session;

CREATE POLICY {label} ON vault.conversation TO muniment_{label} USING (taint = {number} AND trusted = {trusted});
CREATE POLICY {label} ON vault.session TO muniment_{label} USING (level <= {number} AND trusted >= {trusted});

GRANT SELECT (tenant, agent, conversation_id, ceiling, taint, trusted, fence), UPDATE (fence) ON vault.conversation TO muniment_{label};
GRANT SELECT (tenant, agent, session_id, conversation_id, ceiling, create_time, expire_time, close_time, level, trusted, read_only, fence),
      UPDATE (fence)
   ON vault.session TO muniment_{label};
GRANT SELECT (tenant, agent, agent_id, language, memory_enabled, user_profile_enabled, memory_char_limit, user_char_limit,
              max_items, max_bytes, max_revisions, known_from)
   ON vault.agent TO muniment_{label};
GRANT SELECT ON vault.block_link TO muniment_{label};
GRANT DELETE ON muniment_{label}.item TO muniment_{label}; -- through the view deleted_item

-- Without a barrier, because Citus cannot lock rows behind one. The policies hide the rows of other levels.
ALTER VIEW muniment_{label}.session SET (security_invoker = true, security_barrier = false);
ALTER VIEW muniment_{label}.agent SET (security_invoker = true);
ALTER VIEW muniment_{label}.link SET (security_invoker = true);
ALTER VIEW muniment_{label}.deleted_item SET (security_invoker = true);

-- To lock items, the eraser needs UPDATE on some column. delete_time gives it no more power: it may delete the items.
GRANT SELECT (ctid, tenant, agent, kind, name, item_id, revision, change_id, tags, content, delete_time), DELETE, UPDATE (delete_time)
   ON muniment_{label}.item TO muniment_eraser;
GRANT SELECT (ctid, tenant, agent, kind, name, item_id, revision, tags, content), DELETE
   ON muniment_{label}.revision TO muniment_eraser;
GRANT SELECT (ctid, tenant, agent, kind, name, change_id, sample, language, stem_count, gram_count), DELETE
   ON muniment_{label}.chunk TO muniment_eraser;
GRANT SELECT (ctid, tenant, agent, kind, language, change_id), INSERT, DELETE ON muniment_{label}.stat TO muniment_eraser;
GRANT SELECT (ctid, tenant, agent, change_id), INSERT, DELETE ON muniment_{label}.storage TO muniment_eraser;
GRANT SELECT (tenant, agent, kind, prior), UPDATE (prior, embedder, signs, vector, list) ON muniment_{label}.meaning TO muniment_eraser;
GRANT SELECT (tenant, agent, kind, embedder, number, signs, version), UPDATE (signs, version)
   ON muniment_{label}.embedding_list TO muniment_eraser;
GRANT SELECT (tenant, agent, kind, prior_name), DELETE ON muniment_{label}.remote_embedding TO muniment_eraser;

ALTER VIEW muniment_{label}.erasable_item SET (security_invoker = true);
ALTER VIEW muniment_{label}.erasable_revision SET (security_invoker = true);
ALTER VIEW muniment_{label}.erasable_chunk SET (security_invoker = true);
ALTER VIEW muniment_{label}.erasable_stat SET (security_invoker = true);
ALTER VIEW muniment_{label}.erasable_storage SET (security_invoker = true);
ALTER VIEW muniment_{label}.erasing_item SET (security_invoker = true);
ALTER VIEW muniment_{label}.erasing_revision SET (security_invoker = true);
ALTER VIEW muniment_{label}.erasing_chunk SET (security_invoker = true);
ALTER VIEW muniment_{label}.erasing_embedding_list SET (security_invoker = true);

-- The relations that the queries of a session may name. The monitor puts each one that a query names before the query, as
-- a common table expression of the same name, so that the query sees only what belongs to the session.
-- This is the only place where the session predicate is written. No row in `session`: the session is stale.

-- name: session
-- The session, as long as it is open at the level of the connection's role.
SELECT session.*, vault.clock() AS time
  FROM session
 WHERE session.tenant = %(tenant)s
   AND session.session_id = %(session_id)s;

-- name: session_locked
-- The same for writes, under the session lock: RaiseTaint waits for the commit, and a writer that waited finds no row. Nor does one
-- of a session that is read-only.
SELECT session.*, vault.clock() AS time
  FROM session
 WHERE session.tenant = %(tenant)s
   AND session.session_id = %(session_id)s
   AND NOT session.read_only
   FOR NO KEY UPDATE;

-- name: agent
-- The name, language and settings of the session's agent.
SELECT agent.*
  FROM agent
 WHERE agent.tenant = %(tenant)s
   AND agent.session_id = %(session_id)s;

-- name: visible
-- The live versions of the agent's items, at the levels that the role may read.
SELECT visible.*
  FROM visible
 WHERE visible.tenant = %(tenant)s
   AND visible.agent = (SELECT session.agent FROM session);

-- name: visible_revision
-- The revisions of the agent's items, at the levels that the role may read.
SELECT visible_revision.*
  FROM visible_revision
 WHERE visible_revision.tenant = %(tenant)s
   AND visible_revision.agent = (SELECT session.agent FROM session);

-- name: own_item
-- The agent's items at the level of the role that are not deleted, also those that have expired. Without their texts.
SELECT item.kind, item.name
  FROM item
 WHERE item.tenant = %(tenant)s
   AND item.agent = (SELECT session.agent FROM session)
   AND item.delete_time IS NULL;

-- name: deleted_item
-- The agent's items at the level of the role that are deleted, with their texts: UndeleteItem brings them back.
SELECT deleted_item.*
  FROM deleted_item
 WHERE deleted_item.tenant = %(tenant)s
   AND deleted_item.agent = (SELECT session.agent FROM session);

-- name: shared_visible
-- The live versions of the blocks that other agents share with the session's agent.
SELECT shared_visible.*
  FROM shared_visible
 WHERE shared_visible.tenant = %(tenant)s
   AND shared_visible.session_id = %(session_id)s;

-- name: storage_size
-- What the agent has stored at the level of the role.
SELECT storage_size.*
  FROM storage_size
 WHERE storage_size.tenant = %(tenant)s
   AND storage_size.agent = (SELECT session.agent FROM session);

-- name: visible_chunk_by_term
-- The chunks of the agent's items, for searches by term. No index serves IS NOT DISTINCT FROM, so that Postgres does not choose
-- one that reads all chunks of the agent: the terms themselves contain the agent. It stands before visible_chunk, which
-- would otherwise hide the view of that name here.
SELECT visible_chunk.*
  FROM visible_chunk
 WHERE visible_chunk.tenant = %(tenant)s
   AND visible_chunk.agent IS NOT DISTINCT FROM (SELECT session.agent FROM session);

-- name: visible_chunk
-- The chunks of the agent's items.
SELECT visible_chunk.*
  FROM visible_chunk
 WHERE visible_chunk.tenant = %(tenant)s
   AND visible_chunk.agent = (SELECT session.agent FROM session);

-- name: visible_stat
-- The term statistics of the agent.
SELECT visible_stat.*
  FROM visible_stat
 WHERE visible_stat.tenant = %(tenant)s
   AND visible_stat.agent = (SELECT session.agent FROM session);

-- name: visible_meaning
-- The embeddings of the agent's chunks.
SELECT visible_meaning.*
  FROM visible_meaning
 WHERE visible_meaning.tenant = %(tenant)s
   AND visible_meaning.agent = (SELECT session.agent FROM session);

-- name: visible_remote_embedding
-- The embeddings of the agent's chunks by models at addresses, also those that wait for their vectors.
SELECT visible_remote_embedding.*
  FROM visible_remote_embedding
 WHERE visible_remote_embedding.tenant = %(tenant)s
   AND visible_remote_embedding.agent = (SELECT session.agent FROM session);

-- name: visible_embedding_list
-- The lists of the agent's embeddings.
SELECT visible_embedding_list.*
  FROM visible_embedding_list
 WHERE visible_embedding_list.tenant = %(tenant)s
   AND visible_embedding_list.agent = (SELECT session.agent FROM session);

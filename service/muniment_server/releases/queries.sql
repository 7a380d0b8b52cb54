-- The release desk, as the control role. For a host, releases of agents whose ceiling its key does not reach do not exist.
-- Locks are taken in this order: release, agent, conversation, session.

-- name: find_release_rights
-- The key of the call, if it has the rights that a release needs. No row: it lacks one.
SELECT host_key.host_key_id
  FROM vault.host_key
 WHERE host_key.tenant = %(tenant)s
   AND host_key.host_key_id = %(host_key_id)s
   AND (host_key.may_declassify OR NOT %(declassifies)s)
   AND (host_key.may_endorse OR NOT %(endorses)s);

-- name: open_release
-- Ask for a release. No row: no such agent.
WITH opened AS (
    INSERT INTO vault.release AS opened (tenant, agent, release_id, kind, item_id, revision, content_hash, source, target, reason,
                                         requester, create_time, expire_time)
    SELECT %(tenant)s, agent.agent, %(release_id)s::uuid, %(kind)s, %(item_id)s::uuid, %(revision)s, %(content_hash)s, %(source)s,
           %(target)s, %(reason)s, %(host_key_id)s::uuid, vault.clock(), vault.clock() + %(ttl)s::interval
      FROM vault.agent
     WHERE agent.tenant = %(tenant)s
       AND agent.agent_id = %(agent_id)s
       AND agent.ceiling <= %(ceiling)s
       AND agent.delete_time IS NULL
 RETURNING opened.agent, opened.release_id, opened.kind, opened.item_id, opened.revision, opened.reason
),
logged AS (
    INSERT INTO audit AS logged (tenant, event_id, agent, level, host_key_id, method, outcome, kind, item_id, revision, reason)
    SELECT %(tenant)s, %(change_id)s, opened.agent, %(level)s, %(host_key_id)s, %(method)s, 'OK', opened.kind, opened.item_id,
           opened.revision, concat_ws(': ', 'release ' || opened.release_id, nullif(opened.reason, ''))
      FROM opened
)
SELECT opened.release_id
  FROM opened;

-- name: lock_release
-- From here to the commit, this is the only change of the release. In a statement of its own: one that waits does not see what it
-- waited for.
SELECT release.release_id
  FROM vault.release
 WHERE release.tenant = %(tenant)s
   AND release.release_id = %(release_id)s
   FOR NO KEY UPDATE;

-- name: get_releases
-- Releases, newest first. Only approvals of keys that are valid and have the rights count. If the key that asked is no longer valid
-- or has lost a right, one more key must approve. is_own, is_allowed and has_approved are about the key of the call. Identities of
-- one subject at one issuer count as one key, of which the first that approved is named.
SELECT release.release_id, agent.agent_id, release.kind, release.item_id, release.revision, release.content_hash, release.source,
       release.target, release.reason, release.requester, release.refusal, release.writer, release.new_item_id, release.new_revision,
       release.create_time, release.expire_time, release.state AS stored_state, release.expire_time <= vault.clock() AS is_late,
       (
           SELECT tenant.release_approvals + (release.state = 1 AND release.requester <> ALL(able.keys))::integer
             FROM vault.tenant
            WHERE tenant.tenant = %(tenant)s
       ) AS required,
       ARRAY(
           SELECT given.host_key_id
             FROM (
                      SELECT DISTINCT ON (coalesce(given_by.issuer, given_by.host_key_id::text), given_by.subject)
                         approval.host_key_id, approval.approve_time
                        FROM vault.release_approval AS approval
                             JOIN vault.host_key AS given_by
                                  ON given_by.tenant = %(tenant)s
                                 AND given_by.host_key_id = approval.host_key_id
                       WHERE approval.tenant = %(tenant)s
                         AND approval.release_id = release.release_id
                         AND approval.host_key_id = ANY(able.keys)
                       ORDER BY coalesce(given_by.issuer, given_by.host_key_id::text), given_by.subject, approval.approve_time,
                                approval.host_key_id
                  ) AS given
            ORDER BY given.approve_time, given.host_key_id
       ) AS approvers,
       release.requester = %(host_key_id)s OR EXISTS (
           SELECT
             FROM vault.host_key AS asking
                  JOIN vault.host_key AS own
                       ON own.tenant = %(tenant)s
                      AND (own.issuer, own.subject) = (asking.issuer, asking.subject)
            WHERE asking.tenant = %(tenant)s
              AND asking.host_key_id = release.requester
              AND own.host_key_id = %(host_key_id)s
       ) AS is_own,
       %(host_key_id)s = ANY(able.keys) AS is_allowed,
       EXISTS (
           SELECT
             FROM vault.release_approval AS approval
            WHERE approval.tenant = %(tenant)s
              AND (approval.release_id, approval.host_key_id) = (release.release_id, %(host_key_id)s)
       ) AS has_approved
  FROM vault.release
       JOIN vault.agent
            ON agent.tenant = %(tenant)s
           AND agent.agent = release.agent
           AND agent.ceiling <= %(ceiling)s
           AND agent.delete_time IS NULL
       CROSS JOIN LATERAL (
           SELECT ARRAY(
                      SELECT rights.host_key_id
                        FROM host_key
                             JOIN vault.host_key AS rights
                                  ON rights.tenant = %(tenant)s
                                 AND rights.host_key_id = host_key.host_key_id
                       WHERE host_key.tenant = %(tenant)s
                         AND (rights.may_declassify OR NOT release.declassifies)
                         AND (rights.may_endorse OR NOT release.endorses)
                  ) AS keys
       ) AS able
 WHERE release.tenant = %(tenant)s
   AND release.release_id = ANY(%(release_ids)s::uuid[])
 ORDER BY release.create_time DESC, release.release_id DESC;

-- name: list_release_ids
-- One page, newest first.
SELECT release.release_id, release.create_time
  FROM vault.release
       JOIN vault.agent
            ON agent.tenant = %(tenant)s
           AND agent.agent = release.agent
           AND agent.ceiling <= %(ceiling)s
           AND agent.delete_time IS NULL
 WHERE release.tenant = %(tenant)s
   AND (%(agent_id)s::text IS NULL OR agent.agent_id = %(agent_id)s)
   AND (%(include_closed)s OR release.state = 1 AND release.expire_time > vault.clock())
   AND (release.create_time, release.release_id) < (%(before_time)s::timestamptz, %(before_id)s::uuid)
 ORDER BY release.create_time DESC, release.release_id DESC
 LIMIT %(limit)s;

-- name: approve_release
-- Record that the key of the call approves, under the lock of lock_release. A key counts once.
WITH approval AS (
    INSERT INTO vault.release_approval AS approval (tenant, release_id, host_key_id, approve_time)
    VALUES (%(tenant)s, %(release_id)s::uuid, %(host_key_id)s::uuid, vault.clock())
        ON CONFLICT DO NOTHING
 RETURNING approval.release_id
)
INSERT INTO audit AS logged (tenant, event_id, agent, level, host_key_id, method, outcome, kind, item_id, revision, reason)
SELECT %(tenant)s, %(change_id)s, release.agent, %(level)s, %(host_key_id)s, %(method)s, 'OK', release.kind, release.item_id,
       release.revision, 'release ' || release.release_id
  FROM vault.release
       JOIN approval
            ON approval.release_id = release.release_id
 WHERE release.tenant = %(tenant)s
   AND release.release_id = %(release_id)s;

-- name: claim_release
-- Record the session that writes, under the lock of lock_release. No row: items of this kind are being erased.
UPDATE vault.release AS claimed
   SET writer = %(session_id)s::uuid
 WHERE claimed.tenant = %(tenant)s
   AND claimed.release_id = %(release_id)s
   AND claimed.state = 1
   AND NOT EXISTS (
           SELECT
             FROM vault.erasure
            WHERE erasure.tenant = %(tenant)s
              AND (erasure.agent, erasure.kind) = (claimed.agent, claimed.kind)
              AND erasure.create_time > vault.clock() - interval '1 day'
       )
RETURNING claimed.release_id;

-- name: end_release
-- Record that an open release is written or rejected. Changes nothing if it is not open.
WITH ended AS (
    UPDATE vault.release AS ended
       SET state = %(state)s, refusal = '', new_item_id = %(new_item_id)s::uuid, new_revision = %(new_revision)s::integer
     WHERE ended.tenant = %(tenant)s
       AND ended.release_id = %(release_id)s
       AND ended.state = 1
 RETURNING ended.agent, ended.kind, ended.item_id, ended.revision, ended.new_item_id, ended.new_revision
)
INSERT INTO audit AS logged (tenant, event_id, agent, level, host_key_id, method, outcome, kind, item_id, revision, reason)
SELECT %(tenant)s, %(change_id)s, ended.agent, %(level)s, %(host_key_id)s, %(method)s, 'OK', ended.kind,
       coalesce(ended.new_item_id, ended.item_id), coalesce(ended.new_revision, ended.revision), %(reason)s
  FROM ended;

-- name: refuse_release
-- Record why a write was refused. The release stays open.
WITH refused AS (
    UPDATE vault.release AS refused
       SET refusal = %(refusal)s
     WHERE refused.tenant = %(tenant)s
       AND refused.release_id = %(release_id)s
       AND refused.state = 1
 RETURNING refused.agent, refused.kind, refused.item_id, refused.revision
)
INSERT INTO audit AS logged (tenant, event_id, agent, level, host_key_id, method, outcome, kind, item_id, revision, reason)
SELECT %(tenant)s, %(change_id)s, refused.agent, %(level)s, %(host_key_id)s, %(method)s, %(refusal)s, refused.kind, refused.item_id,
       refused.revision, 'release ' || %(release_id)s::uuid
  FROM refused;

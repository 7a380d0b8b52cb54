-- Host keys, for their operator.

-- name: create_host_key
WITH created AS (
    INSERT INTO vault.host_key AS created (tenant, host_key_id, key_hash, name, ceiling, expire_time, only_service, trusted, may_declassify,
                                           may_endorse, issuer, audience, subject, keys)
    SELECT %(tenant)s, %(host_key_id)s, %(key_hash)s, %(name)s, %(ceiling)s, vault.clock() + %(lifetime)s::interval,
           %(only_service)s, %(trusted)s, %(may_declassify)s, %(may_endorse)s, %(issuer)s, %(audience)s, %(subject)s, %(keys)s
 RETURNING created.tenant, created.host_key_id, created.ceiling, created.trusted
)
INSERT INTO muniment_control.audit AS logged (tenant, event_id, level, host_key_id, method, outcome, reason)
SELECT created.tenant, gen_random_uuid(), created.ceiling, created.host_key_id, 'host-key create', 'OK',
       'by ' || %(login)s::text || CASE WHEN created.trusted THEN '' ELSE ', for untrusted sessions' END
  FROM created;

-- name: list_host_keys
SELECT host_key.host_key_id, host_key.name, tenant.name AS tenant, host_key.ceiling, host_key.only_service, host_key.trusted AS integrity,
       host_key.may_declassify, host_key.may_endorse, host_key.create_time, host_key.expire_time, host_key.freeze_time, host_key.revoke_time, host_key.issuer,
       host_key.audience, host_key.subject, host_key.keys
  FROM vault.host_key
       JOIN vault.tenant USING (tenant)
 ORDER BY tenant.name, host_key.create_time, host_key.host_key_id;

-- name: revoke_host_key
WITH revoked AS (
    UPDATE vault.host_key AS revoked
       SET revoke_time = vault.clock()
     WHERE revoked.host_key_id = %(host_key_id)s
       AND revoked.revoke_time IS NULL
 RETURNING revoked.tenant, revoked.host_key_id, revoked.ceiling
),
logged AS (
    INSERT INTO muniment_control.audit AS logged (tenant, event_id, level, host_key_id, method, outcome, reason)
    SELECT revoked.tenant, gen_random_uuid(), revoked.ceiling, revoked.host_key_id, 'host-key revoke', 'OK', 'by ' || %(login)s::text
      FROM revoked
)
SELECT revoked.tenant
  FROM revoked;

-- name: freeze_host_keys
-- Freeze the keys of a tenant, with an audit row for each.
WITH frozen AS (
    UPDATE vault.host_key AS frozen
       SET freeze_time = vault.clock()
     WHERE frozen.tenant = %(tenant)s
       AND frozen.revoke_time IS NULL
       AND frozen.freeze_time IS NULL
 RETURNING frozen.tenant, frozen.host_key_id, frozen.ceiling
),
logged AS (
    INSERT INTO muniment_control.audit AS logged (tenant, event_id, level, host_key_id, method, outcome, reason)
    SELECT frozen.tenant, gen_random_uuid(), frozen.ceiling, frozen.host_key_id, 'tenant freeze', 'OK', 'by ' || %(login)s::text
      FROM frozen
)
SELECT count(*) AS rows
  FROM frozen;

-- name: thaw_host_keys
-- End the freeze of the keys of a tenant, with an audit row for each.
WITH thawed AS (
    UPDATE vault.host_key AS thawed
       SET freeze_time = NULL
     WHERE thawed.tenant = %(tenant)s
       AND thawed.freeze_time IS NOT NULL
 RETURNING thawed.tenant, thawed.host_key_id, thawed.ceiling
),
logged AS (
    INSERT INTO muniment_control.audit AS logged (tenant, event_id, level, host_key_id, method, outcome, reason)
    SELECT thawed.tenant, gen_random_uuid(), thawed.ceiling, thawed.host_key_id, 'tenant thaw', 'OK', 'by ' || %(login)s::text
      FROM thawed
)
SELECT count(*) AS rows
  FROM thawed;

-- name: accepts_host_key
SELECT host_key.host_key_id
  FROM muniment_control.host_key
 WHERE host_key.tenant = %(tenant)s
   AND host_key.key_hash = %(key_hash)s;

-- What versions have replaced, at the levels that each level may read: its own, and those below. What has expired is gone.
-- oldest server: 32

CREATE VIEW muniment_public.visible_revision WITH (security_invoker = true) AS
SELECT *
  FROM (
           SELECT tenant, agent, 1::smallint AS level, item_id, revision, content, tags, update_time, expire_time
             FROM muniment_public.revision
       ) AS revision
 WHERE revision.expire_time IS NULL
    OR revision.expire_time > vault.clock();

GRANT SELECT ON muniment_public.visible_revision TO muniment_public;
GRANT SELECT ON muniment_public.revision TO muniment_public;

CREATE VIEW muniment_internal.visible_revision WITH (security_invoker = true) AS
SELECT *
  FROM (
           SELECT tenant, agent, 1::smallint AS level, item_id, revision, content, tags, update_time, expire_time
             FROM muniment_public.revision
            UNION ALL
           SELECT tenant, agent, 2::smallint AS level, item_id, revision, content, tags, update_time, expire_time
             FROM muniment_internal.revision
       ) AS revision
 WHERE revision.expire_time IS NULL
    OR revision.expire_time > vault.clock();

GRANT SELECT ON muniment_internal.visible_revision TO muniment_internal;
GRANT SELECT ON muniment_public.revision, muniment_internal.revision TO muniment_internal;

CREATE VIEW muniment_confidential.visible_revision WITH (security_invoker = true) AS
SELECT *
  FROM (
           SELECT tenant, agent, 1::smallint AS level, item_id, revision, content, tags, update_time, expire_time
             FROM muniment_public.revision
            UNION ALL
           SELECT tenant, agent, 2::smallint AS level, item_id, revision, content, tags, update_time, expire_time
             FROM muniment_internal.revision
            UNION ALL
           SELECT tenant, agent, 3::smallint AS level, item_id, revision, content, tags, update_time, expire_time
             FROM muniment_confidential.revision
       ) AS revision
 WHERE revision.expire_time IS NULL
    OR revision.expire_time > vault.clock();

GRANT SELECT ON muniment_confidential.visible_revision TO muniment_confidential;
GRANT SELECT ON muniment_public.revision, muniment_internal.revision, muniment_confidential.revision TO muniment_confidential;

CREATE VIEW muniment_restricted.visible_revision WITH (security_invoker = true) AS
SELECT *
  FROM (
           SELECT tenant, agent, 1::smallint AS level, item_id, revision, content, tags, update_time, expire_time
             FROM muniment_public.revision
            UNION ALL
           SELECT tenant, agent, 2::smallint AS level, item_id, revision, content, tags, update_time, expire_time
             FROM muniment_internal.revision
            UNION ALL
           SELECT tenant, agent, 3::smallint AS level, item_id, revision, content, tags, update_time, expire_time
             FROM muniment_confidential.revision
            UNION ALL
           SELECT tenant, agent, 4::smallint AS level, item_id, revision, content, tags, update_time, expire_time
             FROM muniment_restricted.revision
       ) AS revision
 WHERE revision.expire_time IS NULL
    OR revision.expire_time > vault.clock();

GRANT SELECT ON muniment_restricted.visible_revision TO muniment_restricted;
GRANT SELECT ON muniment_public.revision, muniment_internal.revision, muniment_confidential.revision, muniment_restricted.revision TO muniment_restricted;

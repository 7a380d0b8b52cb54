-- The windows on items: each level sees itself and everything below, by its own grants.

CREATE VIEW muniment_public.visible WITH (security_invoker = true) AS
SELECT *
  FROM (
           SELECT * FROM muniment_public.item
       ) AS item
 WHERE item.delete_time IS NULL
   AND (item.expire_time IS NULL OR item.expire_time > vault.clock());

-- The contents of the blocks shared with a session's agent.
CREATE VIEW muniment_public.shared_visible WITH (security_invoker = true, security_barrier = true) AS
SELECT link.session_id, link.owner_agent_id, visible.*
  FROM muniment_public.link
       JOIN muniment_public.visible
            ON (visible.tenant, visible.agent, visible.kind, visible.name) = (link.tenant, link.owner, 3, link.label);

GRANT SELECT ON muniment_public.visible, muniment_public.shared_visible TO muniment_public;

CREATE VIEW muniment_internal.visible WITH (security_invoker = true) AS
SELECT *
  FROM (
           SELECT * FROM muniment_public.item
            UNION ALL
           SELECT * FROM muniment_internal.item
       ) AS item
 WHERE item.delete_time IS NULL
   AND (item.expire_time IS NULL OR item.expire_time > vault.clock());

-- The contents of the blocks shared with a session's agent.
CREATE VIEW muniment_internal.shared_visible WITH (security_invoker = true, security_barrier = true) AS
SELECT link.session_id, link.owner_agent_id, visible.*
  FROM muniment_internal.link
       JOIN muniment_internal.visible
            ON (visible.tenant, visible.agent, visible.kind, visible.name) = (link.tenant, link.owner, 3, link.label);

GRANT SELECT ON muniment_internal.visible, muniment_internal.shared_visible TO muniment_internal;
GRANT USAGE ON SCHEMA muniment_public TO muniment_internal;
GRANT SELECT ON muniment_public.item TO muniment_internal;

CREATE VIEW muniment_confidential.visible WITH (security_invoker = true) AS
SELECT *
  FROM (
           SELECT * FROM muniment_public.item
            UNION ALL
           SELECT * FROM muniment_internal.item
            UNION ALL
           SELECT * FROM muniment_confidential.item
       ) AS item
 WHERE item.delete_time IS NULL
   AND (item.expire_time IS NULL OR item.expire_time > vault.clock());

-- The contents of the blocks shared with a session's agent.
CREATE VIEW muniment_confidential.shared_visible WITH (security_invoker = true, security_barrier = true) AS
SELECT link.session_id, link.owner_agent_id, visible.*
  FROM muniment_confidential.link
       JOIN muniment_confidential.visible
            ON (visible.tenant, visible.agent, visible.kind, visible.name) = (link.tenant, link.owner, 3, link.label);

GRANT SELECT ON muniment_confidential.visible, muniment_confidential.shared_visible TO muniment_confidential;
GRANT USAGE ON SCHEMA muniment_public, muniment_internal TO muniment_confidential;
GRANT SELECT ON muniment_public.item, muniment_internal.item TO muniment_confidential;

CREATE VIEW muniment_restricted.visible WITH (security_invoker = true) AS
SELECT *
  FROM (
           SELECT * FROM muniment_public.item
            UNION ALL
           SELECT * FROM muniment_internal.item
            UNION ALL
           SELECT * FROM muniment_confidential.item
            UNION ALL
           SELECT * FROM muniment_restricted.item
       ) AS item
 WHERE item.delete_time IS NULL
   AND (item.expire_time IS NULL OR item.expire_time > vault.clock());

-- The contents of the blocks shared with a session's agent.
CREATE VIEW muniment_restricted.shared_visible WITH (security_invoker = true, security_barrier = true) AS
SELECT link.session_id, link.owner_agent_id, visible.*
  FROM muniment_restricted.link
       JOIN muniment_restricted.visible
            ON (visible.tenant, visible.agent, visible.kind, visible.name) = (link.tenant, link.owner, 3, link.label);

GRANT SELECT ON muniment_restricted.visible, muniment_restricted.shared_visible TO muniment_restricted;
GRANT USAGE ON SCHEMA muniment_public, muniment_internal, muniment_confidential TO muniment_restricted;
GRANT SELECT ON muniment_public.item, muniment_internal.item, muniment_confidential.item TO muniment_restricted;

-- The embeddings by models at addresses that each level may read: its own, and those of the levels below.

CREATE VIEW muniment_public.visible_remote_embedding WITH (security_invoker = true) AS
SELECT * FROM muniment_public.remote_embedding;

GRANT SELECT ON muniment_public.visible_remote_embedding TO muniment_public;

CREATE VIEW muniment_internal.visible_remote_embedding WITH (security_invoker = true) AS
SELECT * FROM muniment_public.remote_embedding
 UNION ALL
SELECT * FROM muniment_internal.remote_embedding;

GRANT SELECT ON muniment_internal.visible_remote_embedding TO muniment_internal;
GRANT SELECT ON muniment_public.remote_embedding TO muniment_internal;

CREATE VIEW muniment_confidential.visible_remote_embedding WITH (security_invoker = true) AS
SELECT * FROM muniment_public.remote_embedding
 UNION ALL
SELECT * FROM muniment_internal.remote_embedding
 UNION ALL
SELECT * FROM muniment_confidential.remote_embedding;

GRANT SELECT ON muniment_confidential.visible_remote_embedding TO muniment_confidential;
GRANT SELECT ON muniment_public.remote_embedding, muniment_internal.remote_embedding TO muniment_confidential;

CREATE VIEW muniment_restricted.visible_remote_embedding WITH (security_invoker = true) AS
SELECT * FROM muniment_public.remote_embedding
 UNION ALL
SELECT * FROM muniment_internal.remote_embedding
 UNION ALL
SELECT * FROM muniment_confidential.remote_embedding
 UNION ALL
SELECT * FROM muniment_restricted.remote_embedding;

GRANT SELECT ON muniment_restricted.visible_remote_embedding TO muniment_restricted;
GRANT SELECT ON muniment_public.remote_embedding, muniment_internal.remote_embedding, muniment_confidential.remote_embedding TO muniment_restricted;

-- name: create_database
-- The database, with the locale of the cluster. From template0, because a session could hold another template open.
CREATE DATABASE muniment TEMPLATE template0;

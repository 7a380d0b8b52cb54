-- name: create_database
-- Our database, with the locale the cluster was made with. From template0, which nobody can hold open.
CREATE DATABASE muniment TEMPLATE template0;

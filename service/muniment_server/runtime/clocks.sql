-- The clock of the database.

-- name: time
-- The database's time.
SELECT vault.clock() AS time;

-- The time.

-- name: time
-- What the database takes for the time.
SELECT vault.clock() AS time;

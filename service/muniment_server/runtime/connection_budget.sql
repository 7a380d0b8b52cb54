-- The connections of all servers.

-- name: budgets
-- How many servers there are, and how many connections they may open together, as the names of their connections say.
SELECT count(*)::integer AS servers, coalesce(sum(split_part(server.application_name, '/', 2)::integer), 0)::integer AS connections,
       current_setting('max_connections')::integer AS max_connections
  FROM (
           SELECT DISTINCT activity.application_name
             FROM pg_stat_activity AS activity
            WHERE activity.usename = %(role)s
              AND activity.application_name ~ '^muniment/[0-9]{1,5}/'
       ) AS server;

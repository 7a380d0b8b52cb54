-- What the settings of the database server leave in its log.

-- name: log_findings
-- The settings of this connection with which Postgres logs parameters, what to set, and whether that closes the gate. Durations are
-- in milliseconds. Connections of the server set log_parameter_max_length_on_error to 0, and `ddl` logs only migrations.
WITH rule (name, harmless, muted_by) AS (
    VALUES ('log_statement', 'none', 'log_parameter_max_length'),
           ('log_transaction_sample_rate', '0', 'log_parameter_max_length'),
           ('log_min_duration_statement', '-1', 'log_parameter_max_length'),
           ('log_min_duration_sample', '-1', 'log_parameter_max_length'),
           ('log_parameter_max_length_on_error', '0', NULL),
           ('auto_explain.log_min_duration', '-1', 'auto_explain.log_parameter_max_length'),
           ('pgaudit.log_parameter', 'off', NULL)
)
SELECT concat(
           rule.name, ' is ', logging.setting, ' ' || logging.unit, ', so Postgres logs the parameters of statements: set ',
           concat_ws(', or ', rule.muted_by || ' = 0', rule.name || ' = ' || rule.harmless)
       ) AS text,
       CASE WHEN logging.unit = 'ms' THEN logging.setting::bigint <= %(longest)s
            WHEN rule.name = 'log_statement' THEN logging.setting IN ('mod', 'all')
            WHEN rule.name = 'pgaudit.log_parameter' THEN related.setting <> 'none'
            ELSE TRUE END AS closes_gate
  FROM rule
       JOIN pg_catalog.pg_settings AS logging
         ON logging.name = rule.name
        AND logging.setting <> rule.harmless
       LEFT JOIN pg_catalog.pg_settings AS muting ON muting.name = rule.muted_by
       LEFT JOIN pg_catalog.pg_settings AS related
         ON (rule.name, related.name)
            IN (('log_min_duration_sample', 'log_statement_sample_rate'), ('pgaudit.log_parameter', 'pgaudit.log'))
 WHERE (rule.muted_by IS NULL OR muting.setting <> '0')
   AND (rule.name <> 'log_min_duration_sample' OR related.setting <> '0');

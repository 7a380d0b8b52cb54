-- Every version of an item, for an operator.

-- name: history
-- Every version of one name at every level, oldest first.
WITH item AS (
    SELECT 1 AS label, item.* FROM muniment_public_trusted.item
     UNION ALL
    SELECT 2, item.* FROM muniment_public.item
     UNION ALL
    SELECT 3, item.* FROM muniment_internal_trusted.item
     UNION ALL
    SELECT 4, item.* FROM muniment_internal.item
     UNION ALL
    SELECT 5, item.* FROM muniment_confidential_trusted.item
     UNION ALL
    SELECT 6, item.* FROM muniment_confidential.item
     UNION ALL
    SELECT 7, item.* FROM muniment_restricted_trusted.item
     UNION ALL
    SELECT 8, item.* FROM muniment_restricted.item
),
ledger AS (
    SELECT 1 AS label, 1 AS level, revision.* FROM muniment_public_trusted.revision
     UNION ALL
    SELECT 2, 1, revision.* FROM muniment_public.revision
     UNION ALL
    SELECT 3, 2, revision.* FROM muniment_internal_trusted.revision
     UNION ALL
    SELECT 4, 2, revision.* FROM muniment_internal.revision
     UNION ALL
    SELECT 5, 3, revision.* FROM muniment_confidential_trusted.revision
     UNION ALL
    SELECT 6, 3, revision.* FROM muniment_confidential.revision
     UNION ALL
    SELECT 7, 4, revision.* FROM muniment_restricted_trusted.revision
     UNION ALL
    SELECT 8, 4, revision.* FROM muniment_restricted.revision
     UNION ALL -- a passage is written once: its row is its ledger. A deletion replaces the change_id
    SELECT item.label, item.level, item.tenant, item.agent, item.item_id, item.revision,
           CASE WHEN item.delete_time IS NULL THEN item.change_id END, item.kind, item.name, item.content, item.tags,
           item.update_time, item.expire_time
      FROM item
     WHERE item.kind = 4
),
write_event AS (
    SELECT audit.tenant, audit.event_id, audit.session_id
      FROM muniment_auditor.audit
),
item_version AS (
    SELECT ledger.label, ledger.level, ledger.item_id, ledger.revision, ledger.update_time, ledger.expire_time, ledger.content, ledger.tags,
           write_event.session_id, item.delete_time,
           coalesce(item.revision = ledger.revision AND item.delete_time IS NULL, FALSE) AS is_live
      FROM ledger
           LEFT JOIN item
                  ON item.tenant = %(tenant)s
                 AND (item.agent, item.label, item.item_id) = (ledger.agent, ledger.label, ledger.item_id)
           LEFT JOIN write_event
                  ON write_event.tenant = %(tenant)s
                 AND write_event.event_id = ledger.change_id
     WHERE ledger.tenant = %(tenant)s
       AND ledger.agent = %(agent)s
       AND (ledger.kind, ledger.name) = (%(kind)s, %(name)s)
),
logged AS (
    INSERT INTO muniment_control.audit AS logged (tenant, event_id, agent, level, method, outcome, kind, reason)
    SELECT %(tenant)s, gen_random_uuid(), %(agent)s, version_level.level, 'history', 'OK', %(kind)s, 'by ' || %(login)s::text
      FROM (SELECT DISTINCT item_version.level FROM item_version) AS version_level
)
SELECT item_version.label AS classification, item_version.item_id, item_version.revision, item_version.update_time, item_version.expire_time,
       item_version.content, item_version.tags, item_version.session_id, item_version.is_live, item_version.delete_time
  FROM item_version
 ORDER BY item_version.update_time, item_version.label, item_version.revision;

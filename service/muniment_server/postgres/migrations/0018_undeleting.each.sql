-- The deleted items of this level, which UndeleteItem moves back: an INSERT that finds the name taken does nothing, where an UPDATE
-- would fail, and Postgres would log the name. The level's role may overwrite these rows anyway; their ledger stays.
-- oldest server: 17

SET LOCAL search_path = muniment_{level};

CREATE VIEW deleted_item WITH (security_barrier = true) AS
SELECT item.tenant, item.agent, item.kind, item.name, item.item_id, item.revision, item.tier, item.content, item.tags,
       item.thread, item.author, item.event_time, item.create_time, item.expire_time, item.delete_time
  FROM item
 WHERE item.delete_time IS NOT NULL;

GRANT SELECT, DELETE ON deleted_item TO muniment_{level};

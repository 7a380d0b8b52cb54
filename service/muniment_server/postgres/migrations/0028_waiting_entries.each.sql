-- oldest server: 25
-- How much of new index entries may wait is now a setting of connections, so that an import may let more wait than a save. Servers
-- of older versions let 4 MB wait, until none of them runs: their searches read more, and their answers are the same.

SET LOCAL search_path = muniment_{level};

ALTER INDEX chunk_stems RESET (gin_pending_list_limit);
ALTER INDEX chunk_grams RESET (gin_pending_list_limit);

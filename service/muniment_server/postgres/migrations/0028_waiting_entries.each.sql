-- oldest server: 25
-- How much of new index entries may wait is now a setting of connections, so that an import may let more wait than a save. A server
-- of an older version would let 4 MB wait: its searches would read more, and its answers would be the same.

SET LOCAL search_path = muniment_{level};

ALTER INDEX chunk_stems RESET (gin_pending_list_limit);
ALTER INDEX chunk_grams RESET (gin_pending_list_limit);

-- Which labels have anything to embed, as the role that may read them all.

-- name: trusted_labels_in_use
-- Citus can send no select list without columns to its nodes, so this has no EXISTS (SELECT FROM ...).
(SELECT 1 AS label
   FROM muniment_public_trusted.meaning
  LIMIT 1)
 UNION ALL
(SELECT 3
   FROM muniment_internal_trusted.meaning
  LIMIT 1)
 UNION ALL
(SELECT 5
   FROM muniment_confidential_trusted.meaning
  LIMIT 1)
 UNION ALL
(SELECT 7
   FROM muniment_restricted_trusted.meaning
  LIMIT 1);

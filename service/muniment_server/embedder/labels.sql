-- Which labels have anything to embed, as the role that may read them all.

-- name: trusted_labels_in_use
SELECT 1 AS label
 WHERE EXISTS (SELECT FROM muniment_public_trusted.meaning)
 UNION ALL
SELECT 3
 WHERE EXISTS (SELECT FROM muniment_internal_trusted.meaning)
 UNION ALL
SELECT 5
 WHERE EXISTS (SELECT FROM muniment_confidential_trusted.meaning)
 UNION ALL
SELECT 7
 WHERE EXISTS (SELECT FROM muniment_restricted_trusted.meaning);

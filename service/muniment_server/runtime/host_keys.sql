-- Host keys, as the control role.

-- name: has_host_key
-- Whether any host can call: a key that is revoked, frozen or expired does not count.
SELECT EXISTS (SELECT host_key.tenant FROM muniment_control.host_key) AS found;

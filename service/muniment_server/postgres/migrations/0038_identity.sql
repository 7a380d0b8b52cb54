-- A host key may stand for an identity that an issuer vouches for. Its secret was thrown away when it was made.

ALTER TABLE vault.host_key
  ADD COLUMN issuer   text COLLATE "C",
  ADD COLUMN audience text COLLATE "C",
  ADD COLUMN subject  text COLLATE "C",
  ADD COLUMN keys     text COLLATE "C",
  ADD CONSTRAINT identity_is_whole CHECK (num_nulls(issuer, audience, subject, keys) IN (0, 4));

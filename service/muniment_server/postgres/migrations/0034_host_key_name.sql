-- A name for people, so that a list of keys says what each is for. Calls are known by the id.

ALTER TABLE vault.host_key
  ADD COLUMN name text COLLATE "C" CONSTRAINT name_not_empty CHECK (name <> '');

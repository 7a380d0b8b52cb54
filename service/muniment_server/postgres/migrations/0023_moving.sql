-- oldest server: 21
-- A tenant can move to another database server. While it does, it is in two databases, and its rows here say so.

ALTER TABLE vault.tenant
  ADD COLUMN moving_to   text COLLATE "C", -- the server to which it moves: no host key is made for it any more
  ADD COLUMN moving_from text COLLATE "C", -- the server from which it moves: it is not here until that server has let it go
  ADD CONSTRAINT it_moves_one_way CHECK (moving_to IS NULL OR moving_from IS NULL);

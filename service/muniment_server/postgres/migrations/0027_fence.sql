-- oldest server: 23
-- On a cluster, a level may change `fence` in rows that lower levels read, since that is its right to lock them: it must hold nothing.

ALTER TABLE vault.conversation
  ADD CONSTRAINT fence_is_empty CHECK (fence = 0);

ALTER TABLE vault.session
  ADD CONSTRAINT fence_is_empty CHECK (fence = 0);

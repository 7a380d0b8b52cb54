-- What search finds at this level: live memories, notes and passages in pieces, and how many and how long they are.

SET LOCAL search_path = muniment_{level};

-- The pieces of live items, as search sees them. Made of the item in the transaction that writes it, gone with it.
CREATE TABLE chunk (
    tenant      bigint      NOT NULL,
    agent       bigint      NOT NULL,
    kind        smallint    NOT NULL CONSTRAINT blocks_are_not_searched CHECK (kind IN (1, 2, 4)),
    name        text COLLATE "C" NOT NULL,
    level       smallint    NOT NULL DEFAULT {number} CONSTRAINT chunk_is_{level} CHECK (level = {number}),
    change_id   uuid        NOT NULL, -- the version it is a piece of
    piece       integer     NOT NULL,
    is_whole    boolean     NOT NULL, -- the only piece
    start       integer     NOT NULL, -- from this code point of the content
    size        integer     NOT NULL, -- this many
    tier        smallint    NOT NULL, -- what is filtered by, as in the item
    tags        text[]      NOT NULL,
    thread      text COLLATE "C",
    place       text COLLATE "C", -- in the thread: event time, create time and name
    event_time  timestamptz,
    expire_time timestamptz,
    sample      integer     NOT NULL, -- a hash of the text: of all pieces, the first by it are a sample
    language    text COLLATE "C" NOT NULL, -- the text search configuration, in vault
    stems       tsvector    NOT NULL, -- of header and text, labelled by how often: D once, C twice, B three times, A more; and the scope
    grams       tsvector    NOT NULL,
    stem_count  integer     NOT NULL, -- occurrences, without the scope
    gram_count  integer     NOT NULL,
    PRIMARY KEY (tenant, agent, kind, name, change_id, piece),
    FOREIGN KEY (tenant, agent) REFERENCES vault.agent ON DELETE CASCADE
) WITH (toast_tuple_target = 8160); -- in the row and uncompressed: a search looks words up in thousands of them
-- The scope, `@agent:kind`, is a word among the others: so one column is enough, without an extension.
-- Entries wait until there are 128 kB of them: a third less of a save's time, while a search reads them all, in a millisecond.
CREATE INDEX chunk_stems ON chunk USING gin (stems) WITH (gin_pending_list_limit = 128);
CREATE INDEX chunk_grams ON chunk USING gin (grams) WITH (gin_pending_list_limit = 128);
CREATE INDEX chunk_sample ON chunk (tenant, agent, kind, sample);
CREATE INDEX chunk_thread ON chunk (tenant, agent, thread, place) WHERE thread IS NOT NULL AND piece = 0;

-- How many chunks there are, and how long they are together: a row for each change, folded now and then.
CREATE TABLE stat (
    tenant    bigint   NOT NULL,
    agent     bigint   NOT NULL,
    kind      smallint NOT NULL,
    language  text COLLATE "C" NOT NULL,
    change_id uuid     NOT NULL, -- of the change, or of the folding
    chunks    bigint   NOT NULL,
    stems     bigint   NOT NULL,
    grams     bigint   NOT NULL,
    fence     smallint NOT NULL DEFAULT 0, -- UPDATE on it is the right to lock
    PRIMARY KEY (tenant, agent, kind, language, change_id),
    FOREIGN KEY (tenant, agent) REFERENCES vault.agent ON DELETE CASCADE
);

-- What each piece means: a vector, made after the write, and gone with the piece. A turn of a thread is meant together with
-- the turn before it, at its own level: who deletes that one takes its text out of this vector, too.
CREATE TABLE meaning (
    tenant    bigint   NOT NULL,
    agent     bigint   NOT NULL,
    kind      smallint NOT NULL,
    name      text COLLATE "C" NOT NULL,
    level     smallint NOT NULL DEFAULT {number} CONSTRAINT meaning_is_{level} CHECK (level = {number}),
    change_id uuid     NOT NULL,
    piece     integer  NOT NULL,
    prior     uuid, -- the version of the turn before it
    embedder  smallint, -- who made it. Null: it waits for its vector
    signs     bit(384), -- of the vector's components: a first look
    vector    smallint[],
    PRIMARY KEY (tenant, agent, kind, name, change_id, piece),
    FOREIGN KEY (tenant, agent, kind, name, change_id, piece) REFERENCES chunk ON DELETE CASCADE,
    CONSTRAINT meaning_waits_or_is_whole CHECK (num_nulls(embedder, signs, vector) IN (0, 3))
);
CREATE INDEX meaning_waiting ON meaning (tenant, agent, kind, name, change_id, piece) WHERE embedder IS NULL;
CREATE INDEX meaning_prior ON meaning (tenant, agent, prior) WHERE prior IS NOT NULL;
-- All that a look at the signs of one agent's pieces needs: it reads no vectors.
CREATE INDEX meaning_signs ON meaning (tenant, agent, kind, embedder) INCLUDE (signs, name, level, change_id, piece)
 WHERE embedder IS NOT NULL;

GRANT SELECT, INSERT, DELETE ON chunk TO muniment_{level};
GRANT SELECT, INSERT, DELETE, UPDATE (fence) ON stat TO muniment_{level};
GRANT SELECT, INSERT, UPDATE (prior, embedder, signs, vector) ON meaning TO muniment_{level};

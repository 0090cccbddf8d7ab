-- The documents of a library. The derived indexes are made from these tables.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;

-- The text of a document joins `before` and `text` of its passages, then its `after`.
CREATE TABLE document (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    metadata TEXT NOT NULL,     -- JSON
    annotations TEXT NOT NULL,  -- JSON
    digest BLOB NOT NULL,
    content BLOB NOT NULL,
    first INTEGER NOT NULL,     -- the number of its first passage; the others follow it
    passages INTEGER NOT NULL,
    length INTEGER NOT NULL,    -- in characters
    after TEXT NOT NULL,        -- the text after the last passage
    mentions INTEGER NOT NULL
);
CREATE INDEX document_content ON document (content);

CREATE TABLE passage (
    number INTEGER PRIMARY KEY, -- never reused
    document INTEGER NOT NULL,
    begin INTEGER NOT NULL,
    end INTEGER NOT NULL,
    before TEXT NOT NULL,       -- the text between the previous passage and this one
    text TEXT NOT NULL,
    heading TEXT,
    heading_begin INTEGER,
    heading_end INTEGER,
    aspect TEXT NOT NULL,
    sentences BLOB NOT NULL,    -- begin and end of each, relative to the passage, 32 bits
    mentions TEXT NOT NULL      -- JSON: begin, end, kind, concept, found by, context
);

-- The vectors of the first two spaces: one for each passage, or one for each of its sentences (see sentences.py).
-- Each other space has its own table. The vector index uses `sequence` to find the rows that it lacks.
CREATE TABLE vector (sequence INTEGER PRIMARY KEY AUTOINCREMENT, passage INTEGER NOT NULL UNIQUE, code BLOB NOT NULL);
CREATE TABLE sentence (sequence INTEGER PRIMARY KEY AUTOINCREMENT, passage INTEGER NOT NULL UNIQUE, code BLOB NOT NULL);

CREATE TABLE concept (number INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, name TEXT NOT NULL);

-- The values that filters compare, of documents and of passages.
CREATE TABLE document_fact (name TEXT, value TEXT, document INTEGER, PRIMARY KEY (name, value, document)) WITHOUT ROWID;
CREATE TABLE passage_fact (name TEXT, value TEXT, passage INTEGER, PRIMARY KEY (name, value, passage)) WITHOUT ROWID;

-- Removed documents, which the derived indexes remove later.
CREATE TABLE removed (sequence INTEGER PRIMARY KEY AUTOINCREMENT, document INTEGER, first INTEGER, passages INTEGER);

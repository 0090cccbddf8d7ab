-- The truth of a library. Everything else is made from it.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;

-- The text of a document is the texts of its passages, each with what stands before it, and `after`.
CREATE TABLE document (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    metadata TEXT NOT NULL,     -- JSON
    annotations TEXT NOT NULL,  -- JSON
    digest BLOB NOT NULL,
    content BLOB NOT NULL,
    first INTEGER NOT NULL,     -- the number of its first passage; the others follow
    passages INTEGER NOT NULL,
    length INTEGER NOT NULL,    -- in characters
    after TEXT NOT NULL,        -- what follows the last passage
    mentions INTEGER NOT NULL
);
CREATE INDEX document_content ON document (content);

CREATE TABLE passage (
    number INTEGER PRIMARY KEY, -- never used again
    document INTEGER NOT NULL,
    begin INTEGER NOT NULL,
    end INTEGER NOT NULL,
    before TEXT NOT NULL,       -- what stands between the passage before and this one
    text TEXT NOT NULL,
    heading TEXT,
    heading_begin INTEGER,
    heading_end INTEGER,
    aspect TEXT NOT NULL,
    sentences BLOB NOT NULL,    -- begin and end of each, from the begin of the passage, 32 bits
    mentions TEXT NOT NULL      -- JSON: begin, end, kind, concept, found by, context
);

-- The vectors of each grain: one of a passage, or those of its sentences (see sentences.py).
-- `sequence` tells their index what it has not seen yet.
CREATE TABLE vector (sequence INTEGER PRIMARY KEY AUTOINCREMENT, passage INTEGER NOT NULL UNIQUE, code BLOB NOT NULL);
CREATE TABLE sentence (sequence INTEGER PRIMARY KEY AUTOINCREMENT, passage INTEGER NOT NULL UNIQUE, code BLOB NOT NULL);

CREATE TABLE concept (number INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, name TEXT NOT NULL);

-- What is filtered by: of documents, and of passages.
CREATE TABLE document_fact (name TEXT, value TEXT, document INTEGER, PRIMARY KEY (name, value, document)) WITHOUT ROWID;
CREATE TABLE passage_fact (name TEXT, value TEXT, passage INTEGER, PRIMARY KEY (name, value, passage)) WITHOUT ROWID;

-- Documents that were removed, for the derived indexes, which learn of it later.
CREATE TABLE removed (sequence INTEGER PRIMARY KEY AUTOINCREMENT, document INTEGER, first INTEGER, passages INTEGER);

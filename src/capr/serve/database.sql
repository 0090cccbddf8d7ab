CREATE TABLE IF NOT EXISTS job (
    id TEXT PRIMARY KEY,
    created TEXT NOT NULL,
    who TEXT NOT NULL,          -- the token's id
    state TEXT NOT NULL,        -- waiting, running, done, failed, interrupted
    replace INTEGER NOT NULL,
    total INTEGER,              -- documents; unknown while files are read
    done INTEGER NOT NULL DEFAULT 0,
    added INTEGER NOT NULL DEFAULT 0,
    replaced INTEGER NOT NULL DEFAULT 0,
    unchanged INTEGER NOT NULL DEFAULT 0,
    problems TEXT NOT NULL DEFAULT '[]', -- JSON: texts
    more_problems INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS saved (
    id TEXT PRIMARY KEY,
    who TEXT NOT NULL,
    name TEXT NOT NULL,
    address TEXT NOT NULL,
    created TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS feedback (
    who TEXT NOT NULL,
    query TEXT NOT NULL,
    entity TEXT NOT NULL,
    aspect TEXT NOT NULL,
    document TEXT NOT NULL,
    begin INTEGER NOT NULL,
    end INTEGER NOT NULL,
    answers INTEGER NOT NULL,   -- 1 or 0
    created TEXT NOT NULL,
    PRIMARY KEY (who, query, entity, aspect, document, begin, end)
);

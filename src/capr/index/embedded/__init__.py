"""The built-in engine: SQLite stores the documents; word and vector indexes are derived from them."""

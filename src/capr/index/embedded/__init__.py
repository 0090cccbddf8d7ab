"""The engine that ships: SQLite stores the documents; word and vector indexes are derived from them."""

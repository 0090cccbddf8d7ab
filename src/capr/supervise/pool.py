"""The pool: all labelled passages of a corpus, on disk. Training draws its passages from the pool.

SQLite holds the passages and their labels. tantivy finds the BM25 neighbours of a query. Neither needs the corpus in
memory.
"""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from capr.supervise.labels import Labels

SCHEMA = """
CREATE TABLE passage (
    id INTEGER PRIMARY KEY, document TEXT, begin INTEGER, end INTEGER, text TEXT, title TEXT, heading TEXT,
    opening TEXT, labels TEXT
);
CREATE TABLE entity (name TEXT, passage INTEGER);
CREATE TABLE aspect (name TEXT, passage INTEGER);
"""
INDEXES = """
CREATE INDEX by_document ON passage (document);
CREATE INDEX by_entity ON entity (name, passage);
CREATE INDEX by_aspect ON aspect (name, passage);
"""
WORD = re.compile(r"\w+")
HEAP = 64_000_000  # bytes that tantivy may use while it writes


@dataclass(frozen=True, slots=True)
class PoolPassage:
    """A passage of the pool.

    Attributes:
        id: its number in the pool.
        document: the id of its document.
        begin: where it begins, without its heading.
        end: where it ends.
        text: the text from begin to end.
        title: the title of its document.
        heading: the heading above it.
        opening: the opening of its document.
        entities: identity and words of each entity.
        aspects: aspect and heading of each aspect.
        names: other names of the first entity.
        questions: the questions that the source asks about the passage.
    """

    id: int
    document: str
    begin: int
    end: int
    text: str
    title: str
    heading: str
    opening: str
    entities: tuple[tuple[str, str], ...]
    aspects: tuple[tuple[str, str], ...]
    names: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()

    def answers(self, entity: str, aspect: str) -> bool:
        """Tell whether the passage carries both labels, so that it may answer the query as well."""
        return any(entity == identity for identity, _ in self.entities) and any(
            aspect == name for name, _ in self.aspects
        )


class Pool:
    """Labelled passages to draw, to look up by label and to search."""

    def __init__(self, passages: Iterable[Labels]) -> None:
        """Copy all passages, as `Labeller` yields them, into a temporary folder that `close` removes."""
        self._temporary = tempfile.TemporaryDirectory(prefix="capr-")
        self.folder = Path(self._temporary.name)
        self._database = sqlite3.connect(self.folder / "pool.db")
        self._fill(passages)

    def _fill(self, passages: Iterable[Labels]) -> None:
        import tantivy  # training with existing pairs does not need it

        builder = tantivy.SchemaBuilder()
        builder.add_integer_field("id", stored=True)
        builder.add_text_field("text", stored=False, tokenizer_name="en_stem")
        (self.folder / "words").mkdir()
        self._index = tantivy.Index(builder.build(), path=str(self.folder / "words"))
        writer = self._index.writer(HEAP, 1)
        database = self._database
        database.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + SCHEMA)
        self.size = 0
        for self.size, labels in enumerate(passages, 1):
            details = json.dumps([labels.entities, labels.aspects, labels.names, labels.questions])
            context = labels.title, labels.heading, labels.opening
            row = (self.size, labels.document, *labels.span, labels.text, *context, details)
            database.execute("INSERT INTO passage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
            for table, pairs in (("entity", labels.entities), ("aspect", labels.aspects)):
                database.executemany(f"INSERT INTO {table} VALUES (?, ?)", [(name, self.size) for name, _ in pairs])
            writer.add_document(tantivy.Document(id=self.size, text=labels.text))
        database.executescript(INDEXES)
        database.commit()
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the temporary folder."""
        self._database.close()
        self._temporary.cleanup()

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, number: int) -> PoolPassage:
        """Return the passage with that number; the first is 1."""
        row = self._database.execute("SELECT * FROM passage WHERE id = ?", (number,)).fetchone()
        if row is None:
            raise IndexError(f"the pool has the passages 1 to {len(self)}, not {number}")
        return _record(row)

    def of_document(self, document: str) -> list[int]:
        """List the passages of a document."""
        return self._numbers("SELECT id FROM passage WHERE document = ? ORDER BY id", document)

    def with_both(self, entity: str, aspect: str, limit: int) -> list[int]:
        """List passages that carry both the entity and the aspect."""
        query = (
            "SELECT entity.passage FROM entity JOIN aspect ON aspect.passage = entity.passage "
            "WHERE entity.name = ? AND aspect.name = ? ORDER BY 1 LIMIT ?"
        )
        return self._numbers(query, entity, aspect, limit)

    def with_aspect(self, aspect: str, start: int, limit: int) -> list[int]:
        """List passages that carry the aspect, from a number on; after the last passage, continue with the first."""
        from_start = "SELECT passage FROM aspect WHERE name = ? AND passage >= ? ORDER BY passage LIMIT ?"
        wrapped = "SELECT passage FROM aspect WHERE name = ? AND passage < ? ORDER BY passage LIMIT ?"
        return (self._numbers(from_start, aspect, start, limit) + self._numbers(wrapped, aspect, start, limit))[:limit]

    def neighbours(self, words: str, limit: int) -> list[int]:
        """List the passages that BM25 finds for some words, best first."""
        query, _ = self._index.parse_query_lenient(" ".join(WORD.findall(words.lower())), ["text"])
        hits = self._searcher.search(query, limit).hits
        return [self._searcher.doc(address)["id"][0] for _, address in hits]

    def most_common(self, label: str, limit: int | None = None) -> list[tuple[str, int]]:
        """List entities or aspects with the number of passages that carry them; `label`: entity or aspect."""
        table = {"entity": "entity", "aspect": "aspect"}[label]
        query = f"SELECT name, COUNT(*) FROM {table} GROUP BY name ORDER BY 2 DESC, 1 LIMIT ?"
        return self._database.execute(query, (-1 if limit is None else limit,)).fetchall()

    def count(self, label: str) -> int:
        """Count the distinct entities or aspects."""
        table = {"entity": "entity", "aspect": "aspect"}[label]
        return int(self._database.execute(f"SELECT COUNT(DISTINCT name) FROM {table}").fetchone()[0])

    def _numbers(self, query: str, *values: str | int) -> list[int]:
        return [row[0] for row in self._database.execute(query, values)]


def _record(row: Sequence[Any]) -> PoolPassage:
    number, document, begin, end, text, title, heading, opening, labels = row
    entities, aspects, names, questions = json.loads(labels)
    entity_labels, aspect_labels = (tuple((name, words) for name, words in pairs) for pairs in (entities, aspects))
    labels = entity_labels, aspect_labels, tuple(names), tuple(questions)
    return PoolPassage(number, document, begin, end, text, title, heading, opening, *labels)

"""The truth: documents, passages and mentions in SQLite; vectors, see tables.py."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from capr.annotate import Mention
from capr.annotate.concept import Concept
from capr.annotate.context import Cue
from capr.documents import Annotation, Document, Span
from capr.index.database import marks, parts
from capr.index.digest import as_text
from capr.index.filters import compared, document_facts, field_name, passage_facts
from capr.index.protocol import Entry, Prepared, Stored
from capr.index.tables import TABLES, VectorTables
from capr.segment import Passage

PASSAGE = (
    "passage.number, passage.document, begin, end, text, heading, heading_begin, heading_end, aspect, sentences, "
    "passage.mentions, document.id, title, metadata, first, document.passages"
)


@dataclass(frozen=True, slots=True)
class Removed:
    """A document that is there no more, for the derived indexes."""

    sequence: int
    document: int
    first: int
    passages: int


class Store(VectorTables):
    """Documents and all that is known of them."""

    # --- what is there ---

    def last(self) -> tuple[int, int]:
        """The last number of a passage and of a removal."""
        return int(self.meta("passages") or 0), self._sequence("removed")

    def digests(self, ids: Sequence[str]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for some in parts(ids):
            query = f"SELECT id, digest FROM document WHERE id IN ({marks(some)})"
            found.update(self.database.execute(query, some).fetchall())
        return found

    def passages(self, numbers: Sequence[int]) -> dict[int, Stored]:
        found: dict[int, Stored] = {}
        with self.reading() as database:
            for some in parts(numbers):
                near = {number + step for number in some for step in (-1, 1)}
                rows = database.execute(
                    f"SELECT number, document, begin, end FROM passage WHERE number IN ({marks(near)})", tuple(near)
                )
                spans = {(number, document): Span(begin, end) for number, document, begin, end in rows}
                query = (
                    f"SELECT {PASSAGE} FROM passage JOIN document ON document.number = passage.document "
                    f"WHERE passage.number IN ({marks(some)})"
                )
                for row in database.execute(query, some).fetchall():
                    number, document = row[:2]
                    sides = spans.get((number - 1, document)), spans.get((number + 1, document))
                    found[number] = self._stored(row, *sides)
        return found

    def groups(self, numbers: Sequence[int], by: str) -> dict[int, str]:
        """The document or patient of each passage; a document without a patient stands for itself."""
        found: dict[int, str] = {}
        keys: dict[str, str] = {}
        for some in parts(numbers):
            query = (
                "SELECT passage.number, id, metadata FROM passage JOIN document ON document.number = passage.document "
                f"WHERE passage.number IN ({marks(some)})"
            )
            for number, id, metadata in self.database.execute(query, some):
                if by == "document":
                    keys[id] = id
                elif id not in keys:
                    names = {name.casefold(): value for name, value in json.loads(metadata).items()}
                    keys[id] = str(names.get("patient") or id)
                found[number] = keys[id]
        return found

    def neighbours(self, number: int, distance: int) -> list[int]:
        """The numbers of the passages of the same document up to a distance."""
        query = (
            "SELECT near.number FROM passage JOIN passage AS near ON near.document = passage.document "
            "AND near.number BETWEEN passage.number - ? AND passage.number + ? "
            "WHERE passage.number = ? AND near.number != passage.number ORDER BY 1"
        )
        return [row[0] for row in self.database.execute(query, (distance, distance, number))]

    def passages_in(self, id: str) -> list[int]:
        """The numbers of the passages of a document."""
        row = self.database.execute("SELECT first, passages FROM document WHERE id = ?", (id,)).fetchone()
        return list(range(row[0], row[0] + row[1])) if row else []

    def having(self, of: str, name: str, values: Sequence[str]) -> list[int]:
        """The numbers of those (`of`: document or passage) that have one of some values."""
        found: list[int] = []
        for some in parts(values):
            query = f"SELECT {of} FROM {of}_fact WHERE name = ? AND value IN ({marks(some)})"
            found += [row[0] for row in self.database.execute(query, (name, *some))]
        return found

    def having_any(self, of: str, name: str) -> list[tuple[str, int]]:
        """All values of a name, in their order, with the numbers of those that have them."""
        query = f"SELECT value, {of} FROM {of}_fact WHERE name = ? ORDER BY value"
        return self.database.execute(query, (name,)).fetchall()

    def spelled(self, name: str, documents: Mapping[str, int]) -> dict[str, str]:
        """Values of a field as the documents write them that are given for each."""
        found = {}
        for value, number in documents.items():
            row = self.database.execute("SELECT metadata FROM document WHERE number = ?", (number,)).fetchone()
            said = [given for key, given in json.loads(row[0]).items() if field_name(key) == name] if row else []
            every = [str(one).strip() for given in said for one in (given if isinstance(given, list) else [given])]
            found[value] = next((one for one in every if compared(name, one) == value), value)
        return found

    def has(self, name: str) -> bool:
        """Whether a document has a field of that name."""
        query = "SELECT 1 FROM document_fact WHERE name = ? LIMIT 1"
        return self.database.execute(query, (name,)).fetchone() is not None

    def ids(self, numbers: Sequence[int]) -> list[str]:
        """The ids of documents."""
        found: list[str] = []
        for some in parts(numbers):
            query = f"SELECT id FROM document WHERE number IN ({marks(some)}) ORDER BY number"
            found += [row[0] for row in self.database.execute(query, some)]
        return found

    def extents(self, last: int) -> list[tuple[int, int, int]]:
        """Number, first passage and number of passages of every document, up to a last passage."""
        query = "SELECT number, first, passages FROM document WHERE first + passages - 1 <= ? ORDER BY number"
        return self.database.execute(query, (last,)).fetchall()

    def removed_since(self, sequence: int) -> list[Removed]:
        query = "SELECT * FROM removed WHERE sequence > ? ORDER BY sequence"
        return [Removed(*row) for row in self.database.execute(query, (sequence,))]

    def removed_extents(self) -> list[tuple[int, int]]:
        """First number and number of the passages of all documents that were removed."""
        return self.database.execute("SELECT first, passages FROM removed").fetchall()

    def passages_since(self, passage: int) -> Iterator[tuple[int, list[Stored]]]:
        """The documents that were added after a passage, with their passages, which know no neighbours."""
        query = "SELECT number FROM document WHERE first > ? ORDER BY number"
        for (document,) in self.database.execute(query, (passage,)).fetchall():
            yield document, self.passages_of(document)

    def passages_of(self, document: int) -> list[Stored]:
        """All passages of a document, which know no neighbours."""
        query = (
            f"SELECT {PASSAGE} FROM passage JOIN document ON document.number = passage.document "
            "WHERE passage.number BETWEEN (SELECT first FROM document WHERE number = ?1) AND "
            "(SELECT first + passages - 1 FROM document WHERE number = ?1) ORDER BY passage.number"
        )
        return [self._stored(row, None, None) for row in self.database.execute(query, (document,))]

    def counts(self) -> dict[str, Any]:
        """What `Stats` says of the contents."""
        one = "SELECT COUNT(*), TOTAL(passages), TOTAL(length), TOTAL(mentions) FROM document"
        documents, passages, characters, mentions = self.database.execute(one).fetchone()
        value = "SELECT COUNT(DISTINCT value) FROM document_fact WHERE name = 'patient'"
        fields = "SELECT name, COUNT(DISTINCT document) FROM document_fact GROUP BY name ORDER BY 2 DESC, 1"
        return {
            "documents": documents,
            "patients": self.database.execute(value).fetchone()[0],
            "passages": int(passages),
            "characters": int(characters),
            "mentions": int(mentions),
            "vectors": self.database.execute("SELECT COUNT(*) FROM vector").fetchone()[0],
            "encoder": self.encoder(),
            **self.sentence_counts(),
            "fields": {name: count for name, count in self.database.execute(fields) if not re.match("#[^#]", name)},
        }

    def counts_of(self, documents: Sequence[int]) -> dict[str, Any]:
        """The same of some documents."""
        total = [0, 0, 0, 0]
        fields: Counter[str] = Counter()
        patients: set[str] = set()
        for some in parts(documents):
            one = f"FROM document WHERE number IN ({marks(some)})"
            query = f"SELECT COUNT(*), TOTAL(passages), TOTAL(length), TOTAL(mentions) {one}"
            found = self.database.execute(query, some).fetchone()
            total = [known + int(new) for known, new in zip(total, found, strict=True)]
            for id, metadata in self.database.execute(f"SELECT id, metadata {one}", some):
                facts = list(document_facts(Document(id, "", "", json.loads(metadata))))
                fields.update({name for name, _ in facts})
                patients.update(value for name, value in facts if name == "patient")
        return {
            **dict(zip(("documents", "passages", "characters", "mentions"), total, strict=True)),
            "patients": len(patients),
            "vectors": self.vectors_in(documents),
            "encoder": self.encoder(),
            **self.sentence_counts(documents),
            "fields": {
                name: count
                for name, count in sorted(fields.items(), key=lambda pair: (-pair[1], pair[0]))
                if not re.match("#[^#]", name)
            },
        }

    def document(self, id: str) -> Document | None:
        with self.reading() as database:
            row = database.execute("SELECT * FROM document WHERE id = ?", (id,)).fetchone()
            return self._document(row) if row else None

    def all_ids(self) -> list[str]:
        """The ids of all documents, in the order in which they were added."""
        return [row[0] for row in self.database.execute("SELECT id FROM document ORDER BY number")]

    def documents(self, after: int = 0) -> Iterator[tuple[int, Document]]:
        """All documents with their numbers, one at a time; what is removed meanwhile is left out."""
        while True:
            with self.reading() as database:
                query = "SELECT * FROM document WHERE number > ? ORDER BY number LIMIT 1"
                row = database.execute(query, (after,)).fetchone()
                if row is None:
                    return
                after, document = row[0], self._document(row)
            yield after, document

    def _document(self, row: Sequence[Any]) -> Document:
        _, id, title, metadata, annotations, _, _, first, count, _, after, _ = row
        query = "SELECT before, text FROM passage WHERE number BETWEEN ? AND ? ORDER BY number"
        pieces = self.database.execute(query, (first, first + count - 1))
        with self._sound():
            text = "".join([part for piece in pieces for part in piece]) + after
        with self._sound():
            said = tuple(Annotation(kind, Span(*span), value) for kind, span, value in json.loads(annotations))
            return Document(id, text, title, json.loads(metadata), said)

    def _stored(self, row: Sequence[Any], previous: Span | None, following: Span | None) -> Stored:
        (number, _, begin, end, text, heading, heading_begin, heading_end, aspect, sentences, mentions, id, title,
         metadata, first, count) = row  # fmt: skip
        with self._sound():
            bounds = np.frombuffer(sentences, np.uint32).tolist()
            cut = tuple(Span(begin + a, begin + b) for a, b in zip(bounds[::2], bounds[1::2], strict=True))
            heading_span = None if heading_begin is None else Span(heading_begin, heading_end)
            passage = Passage(id, number - first, Span(begin, end), heading, heading_span, cut, previous, following)
            entry = Entry(passage, text, aspect, tuple(self._mention(*given) for given in json.loads(mentions)))
            return Stored(number, entry, title, json.loads(metadata), count)

    def _mention(
        self, begin: int, end: int, kind: str, concept: int | None, by: list[str], said: Mapping[str, list[Any]]
    ) -> Mention:
        context = {
            flag: Cue(flag, words, Span(*cue) if cue else None, Span(*scope))
            for flag, (words, cue, scope) in said.items()
        }
        return Mention(Span(begin, end), kind, self._concept(concept), tuple(by), context)

    def _concept(self, number: int | None) -> Concept | None:
        if number is None:
            return None
        known: dict[int, Concept] = self._local.concepts
        if number not in known:
            query = "SELECT code, kind, name FROM concept WHERE number = ?"
            known[number] = Concept(*self.database.execute(query, (number,)).fetchone())
        return known[number]

    # --- changes, all within `changing` ---

    def add(self, prepared: Prepared) -> None:
        database, document = self.database, prepared.document
        self.remove([document.id])
        first = int(self.meta("passages") or 0) + 1
        position = 0
        rows = []
        for number, entry in enumerate(prepared.entries, first):
            span, heading = entry.passage.span, entry.passage.heading_span or (None, None)
            cut = np.array(entry.passage.sentences, np.int64).reshape(-1) - span.begin
            mentions = json.dumps([self._row(mention) for mention in entry.mentions], ensure_ascii=False)
            rows.append((
                number, span.begin, span.end, document.text[position : span.begin], entry.text, entry.passage.heading,
                *heading, entry.aspect, cut.astype(np.uint32).tobytes(), mentions,
            ))  # fmt: skip
            position = span.end
        said = [[a.kind, a.span, a.value] for a in document.annotations]
        query = "INSERT INTO document VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        added = database.execute(query, (
            document.id, document.title, as_text(document.metadata), as_text(said), prepared.digest, prepared.content,
            first, len(rows), len(document.text), document.text[position:],
            sum(len(entry.mentions) for entry in prepared.entries),
        ))  # fmt: skip
        query = f"INSERT INTO passage VALUES (?, {added.lastrowid}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        database.executemany(query, rows)
        query = f"INSERT INTO document_fact VALUES (?, ?, {added.lastrowid})"
        database.executemany(query, document_facts(document))
        facts = (
            (*fact, number)
            for number, entry in enumerate(prepared.entries, first)
            for fact in passage_facts(entry.aspect, entry.mentions)
        )
        database.executemany("INSERT INTO passage_fact VALUES (?, ?, ?)", facts)
        self.set_meta("passages", str(first + len(rows) - 1))
        if prepared.vectors is not None:
            self.set_vectors(dict(enumerate(prepared.vectors, first)))
        if prepared.sentences is not None:
            self.set_sentences(dict(enumerate(prepared.sentences, first)))

    def remove(self, ids: Iterable[str]) -> int:
        database = self.database
        count = 0
        for id in ids:
            row = database.execute("SELECT * FROM document WHERE id = ?", (id,)).fetchone()
            if row is None:
                continue
            count += 1
            number, first, passages = row[0], row[7], row[8]
            numbers = range(first, first + passages)
            for stored in self.passages(numbers).values():
                facts = passage_facts(stored.entry.aspect, stored.entry.mentions)
                query = "DELETE FROM passage_fact WHERE name = ? AND value = ? AND passage = ?"
                database.executemany(query, [(*fact, stored.number) for fact in facts])
            facts = document_facts(Document(row[1], "", row[2], json.loads(row[3])))
            query = "DELETE FROM document_fact WHERE name = ? AND value = ? AND document = ?"
            database.executemany(query, [(*fact, number) for fact in facts])
            bounds = (first, first + passages - 1)
            for grain in self.grains():
                database.execute(f"DELETE FROM {TABLES[grain]} WHERE passage BETWEEN ? AND ?", bounds)
            database.execute("DELETE FROM passage WHERE number BETWEEN ? AND ?", bounds)
            database.execute("DELETE FROM document WHERE number = ?", (number,))
            database.execute("INSERT INTO removed VALUES (NULL, ?, ?, ?)", (number, first, passages))
        return count

    def compact_removed(self) -> None:
        """Keeps adjacent passages that were removed as one row."""
        merged: list[list[int]] = []
        for row in sorted(self.removed_since(0), key=lambda row: row.first):
            if merged and sum(merged[-1]) == row.first:
                merged[-1][1] += row.passages
            elif row.passages:
                merged.append([row.first, row.passages])
        self.database.execute("DELETE FROM removed")
        self.database.executemany("INSERT INTO removed VALUES (NULL, 0, ?, ?)", merged)

    def _row(self, mention: Mention) -> list[Any]:
        number = None
        if mention.concept is not None:
            concept = mention.concept
            query = "SELECT number FROM concept WHERE code = ?"
            row = self.database.execute(query, (concept.code,)).fetchone()
            if row is None:
                query = "INSERT INTO concept VALUES (NULL, ?, ?, ?)"
                number = self.database.execute(query, (concept.code, concept.kind, concept.name)).lastrowid
            else:
                number = row[0]
        context = {flag: [cue.words, cue.span, cue.scope] for flag, cue in mention.context.items()}
        return [*mention.span, mention.kind, number, mention.found_by, context]

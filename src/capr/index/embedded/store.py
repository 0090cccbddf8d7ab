"""Documents, passages and mentions in SQLite, the source of all derived indexes. tables.py has the vectors."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from capr.annotate import Mention
from capr.annotate.concept import Concept
from capr.annotate.context import Cue
from capr.documents import Annotation, Document, Span
from capr.index.embedded.database import batches, placeholders
from capr.index.embedded.keys import Keys
from capr.index.embedded.space_names import names_of
from capr.index.embedded.tables import VectorTables
from capr.index.filters import comparable, document_facts, field_name, passage_facts
from capr.index.records import PassageEntry, PassageKey, PreparedDocument, StoredPassage
from capr.segment import Cutting, Passage
from capr.text.digest import as_text

PASSAGE = (
    "passage.number, passage.document, begin, end, text, heading, heading_begin, heading_end, aspect, sentences, "
    "passage.mentions, document.id, title, metadata, first, document.passages"
)


@dataclass(frozen=True, slots=True)
class Removed:
    """A removed document, which the derived indexes remove later."""

    sequence: int
    document: int
    first: int
    passages: int


class Store(VectorTables):
    """Stores documents with their passages, mentions, facts and vectors."""

    def __init__(self, folder: Path, create: bool = False) -> None:
        super().__init__(folder, create)
        self._keys = Keys()

    # --- contents ---

    def last(self) -> tuple[int, int]:
        """Return the last numbers of a passage and of a removal."""
        return int(self.meta("passages") or 0), self.sequence("removed")

    def digests(self, ids: Sequence[str]) -> dict[str, bytes]:
        digests: dict[str, bytes] = {}
        for batch in batches(ids):
            query = f"SELECT id, digest FROM document WHERE id IN ({placeholders(batch)})"
            digests.update(self.database.execute(query, batch).fetchall())
        return digests

    def passages(self, numbers: Sequence[int]) -> dict[int, StoredPassage]:
        passages: dict[int, StoredPassage] = {}
        with self.reading() as database:
            for batch in batches(numbers):
                adjacent = {number + step for number in batch for step in (-1, 1)}
                query = f"SELECT number, document, begin, end FROM passage WHERE number IN ({placeholders(adjacent)})"
                rows = database.execute(query, tuple(adjacent))
                spans = {(number, document): Span(begin, end) for number, document, begin, end in rows}
                query = (
                    f"SELECT {PASSAGE} FROM passage JOIN document ON document.number = passage.document "
                    f"WHERE passage.number IN ({placeholders(batch)})"
                )
                for row in database.execute(query, batch).fetchall():
                    number, document = row[:2]
                    neighbours = spans.get((number - 1, document)), spans.get((number + 1, document))
                    passages[number] = self._stored(row, *neighbours)
        return passages

    def keys(self, numbers: Sequence[int]) -> dict[int, PassageKey]:
        """Return the keys of passages."""
        return self._keys.of(self, numbers)

    def numbers(self, keys: Iterable[PassageKey]) -> dict[PassageKey, int]:
        """Return the numbers of the passages that exist, in the order of the keys."""
        keys = list(keys)
        documents: dict[str, tuple[int, int]] = {}
        for batch in batches(list({key.document for key in keys})):
            query = f"SELECT id, first, passages FROM document WHERE id IN ({placeholders(batch)})"
            documents.update((id, (first, count)) for id, first, count in self.database.execute(query, batch))
        extents = ((key, *documents.get(key.document, (0, 0))) for key in keys)
        return {key: first + key.passage_index for key, first, count in extents if 0 <= key.passage_index < count}

    def patients_of(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the patient of each document, or the document's id if it has no patient."""
        patients = {}
        for batch in batches(ids):
            query = f"SELECT id, metadata FROM document WHERE id IN ({placeholders(batch)})"
            for id, metadata in self.database.execute(query, batch):
                fields = {name.casefold(): value for name, value in json.loads(metadata).items()}
                patients[id] = str(fields.get("patient") or id)
        return patients

    def numbers_of_documents(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the numbers of the documents that exist, by id."""
        numbers: dict[str, int] = {}
        for batch in batches(ids):
            query = f"SELECT id, number FROM document WHERE id IN ({placeholders(batch)})"
            numbers.update(self.database.execute(query, batch).fetchall())
        return numbers

    def passages_in(self, id: str) -> list[int]:
        """Return the numbers of a document's passages."""
        row = self.database.execute("SELECT first, passages FROM document WHERE id = ?", (id,)).fetchone()
        return list(range(row[0], row[0] + row[1])) if row else []

    def having(self, kind: str, name: str, values: Sequence[str]) -> list[int]:
        """Return the numbers of documents or passages (`kind`) in which the field has one of the values."""
        numbers: list[int] = []
        for batch in batches(values):
            query = f"SELECT {kind} FROM {kind}_fact WHERE name = ? AND value IN ({placeholders(batch)})"
            numbers += [row[0] for row in self.database.execute(query, (name, *batch))]
        return numbers

    def having_any(self, kind: str, name: str) -> list[tuple[str, int]]:
        """Return all values of a field, sorted, each with the number of a document or passage (`kind`) that has it."""
        query = f"SELECT value, {kind} FROM {kind}_fact WHERE name = ? ORDER BY value"
        return self.database.execute(query, (name,)).fetchall()

    def display_values(self, name: str, documents: Mapping[str, int]) -> dict[str, str]:
        """Return the spelling of each value of a field in a document.

        Args:
            name: the field.
            documents: for each value in its compared form, the number of a document that has it.
        """
        spellings = {}
        for value, number in documents.items():
            row = self.database.execute("SELECT metadata FROM document WHERE number = ?", (number,)).fetchone()
            fields = [content for key, content in json.loads(row[0]).items() if field_name(key) == name] if row else []
            lists = [content if isinstance(content, list) else [content] for content in fields]
            texts = [str(item).strip() for items in lists for item in items]
            spellings[value] = next((text for text in texts if comparable(name, text) == value), value)
        return spellings

    def has(self, name: str) -> bool:
        """Whether a document has a field of that name."""
        query = "SELECT 1 FROM document_fact WHERE name = ? LIMIT 1"
        return self.database.execute(query, (name,)).fetchone() is not None

    def ids(self, numbers: Sequence[int]) -> list[str]:
        """Return the ids of documents."""
        ids: list[str] = []
        for batch in batches(numbers):
            query = f"SELECT id FROM document WHERE number IN ({placeholders(batch)}) ORDER BY number"
            ids += [row[0] for row in self.database.execute(query, batch)]
        return ids

    def extents(self, last: int) -> list[tuple[int, int, int]]:
        """Return number, first passage and passage count of every document up to a last passage."""
        query = "SELECT number, first, passages FROM document WHERE first + passages - 1 <= ? ORDER BY number"
        return self.database.execute(query, (last,)).fetchall()

    def removed_since(self, sequence: int) -> list[Removed]:
        query = "SELECT * FROM removed WHERE sequence > ? ORDER BY sequence"
        return [Removed(*row) for row in self.database.execute(query, (sequence,))]

    def removed_extents(self) -> list[tuple[int, int]]:
        """Return, for each removed document, the number of its first passage and how many passages it had."""
        return self.database.execute("SELECT first, passages FROM removed").fetchall()

    def passages_since(self, passage: int) -> Iterator[tuple[int, list[StoredPassage]]]:
        """Yield the documents that were added after a passage, with their passages (without neighbours)."""
        query = "SELECT number FROM document WHERE first > ? ORDER BY number"
        for (document,) in self.database.execute(query, (passage,)).fetchall():
            yield document, self.passages_of(document)

    def passages_of(self, document: int) -> list[StoredPassage]:
        """Return all passages of a document, without their neighbours."""
        query = (
            f"SELECT {PASSAGE} FROM passage JOIN document ON document.number = passage.document "
            "WHERE passage.number BETWEEN (SELECT first FROM document WHERE number = ?1) AND "
            "(SELECT first + passages - 1 FROM document WHERE number = ?1) ORDER BY passage.number"
        )
        return [self._stored(row, None, None) for row in self.database.execute(query, (document,))]

    def cuttings(self) -> list[Cutting]:
        """Return all ways in which documents were cut; the last one is current."""
        with self._row_errors():
            return [Cutting(**options) for options in json.loads(self.meta("cuttings") or "[{}]")]

    def set_cutting(self, cutting: Cutting) -> None:
        older = [used for used in self.cuttings() if used != cutting]
        self.set_meta("cuttings", json.dumps([used.as_json() for used in (*older, cutting)]))

    def counts(self) -> dict[str, Any]:
        """Count the contents for `Stats`."""
        totals = "SELECT COUNT(*), TOTAL(passages), TOTAL(length), TOTAL(mentions) FROM document"
        documents, passages, characters, mentions = self.database.execute(totals).fetchone()
        patients = "SELECT COUNT(DISTINCT value) FROM document_fact WHERE name = 'patient'"
        fields = "SELECT name, COUNT(DISTINCT document) FROM document_fact GROUP BY name ORDER BY 2 DESC, 1"
        return {
            "documents": documents,
            "patients": self.database.execute(patients).fetchone()[0],
            "passages": int(passages),
            "characters": int(characters),
            "mentions": int(mentions),
            "spaces": self.space_stats(),
            "fields": {name: count for name, count in self.database.execute(fields) if not re.match("#[^#]", name)},
        }

    def counts_of(self, documents: Sequence[int]) -> dict[str, Any]:
        """Count the contents of documents for `Stats`."""
        totals = [0, 0, 0, 0]
        fields: Counter[str] = Counter()
        patients: set[str] = set()
        for batch in batches(documents):
            source = f"FROM document WHERE number IN ({placeholders(batch)})"
            query = f"SELECT COUNT(*), TOTAL(passages), TOTAL(length), TOTAL(mentions) {source}"
            counts = self.database.execute(query, batch).fetchone()
            totals = [old + int(new) for old, new in zip(totals, counts, strict=True)]
            for id, metadata in self.database.execute(f"SELECT id, metadata {source}", batch):
                facts = list(document_facts(Document(id, "", "", json.loads(metadata))))
                fields.update({name for name, _ in facts})
                patients.update(value for name, value in facts if name == "patient")
        return {
            **dict(zip(("documents", "passages", "characters", "mentions"), totals, strict=True)),
            "patients": len(patients),
            "spaces": self.space_stats(documents),
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
        """Return the ids of all documents, in the order in which they were added."""
        return [row[0] for row in self.database.execute("SELECT id FROM document ORDER BY number")]

    def documents(self, after: int = 0) -> Iterator[tuple[int, Document]]:
        """Yield all documents with their numbers, except documents that are removed during the iteration."""
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
        rows = self.database.execute(query, (first, first + count - 1))
        with self._row_errors():
            text = "".join([part for parts in rows for part in parts]) + after
            marked = tuple(Annotation(kind, Span(*span), value) for kind, span, value in json.loads(annotations))
            return Document(id, text, title, json.loads(metadata), marked)

    def _stored(self, row: Sequence[Any], previous: Span | None, following: Span | None) -> StoredPassage:
        number, _, begin, end, text, heading, heading_begin, heading_end, aspect, bounds, mentions, *document = row
        id, title, metadata, first, count = document
        with self._row_errors():
            edges = np.frombuffer(bounds, np.uint32).tolist()
            sentences = tuple(
                Span(begin + low, begin + high) for low, high in zip(edges[::2], edges[1::2], strict=True)
            )
            heading_span = None if heading_begin is None else Span(heading_begin, heading_end)
            passage = Passage(
                id, number - first, Span(begin, end), heading, heading_span, sentences, previous, following
            )
            entry = PassageEntry(
                passage, text, aspect, tuple(self._mention(*fields) for fields in json.loads(mentions))
            )
            return StoredPassage(entry, title, json.loads(metadata), count, number)

    def _mention(
        self, begin: int, end: int, kind: str, concept: int | None, found_by: list[str], flags: Mapping[str, list[Any]]
    ) -> Mention:
        context = {
            flag: Cue(flag, words, Span(*cue) if cue else None, Span(*scope))
            for flag, (words, cue, scope) in flags.items()
        }
        return Mention(Span(begin, end), kind, self._concept(concept), tuple(found_by), context)

    def _concept(self, number: int | None) -> Concept | None:
        if number is None:
            return None
        database, concepts = self.database, self.concepts
        if number not in concepts:
            query = "SELECT code, kind, name FROM concept WHERE number = ?"
            concepts[number] = Concept(*database.execute(query, (number,)).fetchone())
        return concepts[number]

    # --- changes, all within `changing` ---

    def add(self, prepared: PreparedDocument) -> None:
        database, document = self.database, prepared.document
        self.remove([document.id])
        first = int(self.meta("passages") or 0) + 1
        position = 0
        rows = []
        for number, entry in enumerate(prepared.entries, first):
            span, heading = entry.passage.span, entry.passage.heading_span or (None, None)
            bounds = np.array(entry.passage.sentences, np.int64).reshape(-1) - span.begin
            mentions = json.dumps([self._row(mention) for mention in entry.mentions], ensure_ascii=False)
            before = document.text[position : span.begin]
            start = (number, span.begin, span.end, before, entry.text, entry.passage.heading, *heading)
            rows.append((*start, entry.aspect, bounds.astype(np.uint32).tobytes(), mentions))
            position = span.end
        annotations = [[a.kind, a.span, a.value] for a in document.annotations]
        texts = (document.id, document.title, as_text(document.metadata), as_text(annotations))
        digests = (prepared.digest, prepared.content)
        counts = (first, len(rows), len(document.text))
        mention_count = sum(len(entry.mentions) for entry in prepared.entries)
        query = "INSERT INTO document VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        values = (*texts, *digests, *counts, document.text[position:], mention_count)
        document_number = database.execute(query, values).lastrowid
        query = f"INSERT INTO passage VALUES (?, {document_number}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        database.executemany(query, rows)
        query = f"INSERT INTO document_fact VALUES (?, ?, {document_number})"
        database.executemany(query, document_facts(document))
        facts = (
            (*fact, number)
            for number, entry in enumerate(prepared.entries, first)
            for fact in passage_facts(entry.aspect, entry.mentions)
        )
        database.executemany("INSERT INTO passage_fact VALUES (?, ?, ?)", facts)
        self.set_meta("passages", str(first + len(rows) - 1))
        for space, vectors in prepared.vectors.items():
            self.set_vectors(dict(enumerate(vectors, first)), space)

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
                database.executemany(query, [(*fact, stored.order) for fact in facts])
            facts = document_facts(Document(row[1], "", row[2], json.loads(row[3])))
            query = "DELETE FROM document_fact WHERE name = ? AND value = ? AND document = ?"
            database.executemany(query, [(*fact, number) for fact in facts])
            bounds = (first, first + passages - 1)
            for space in self.spaces():
                database.execute(f"DELETE FROM {names_of(space).table} WHERE passage BETWEEN ? AND ?", bounds)
            database.execute("DELETE FROM passage WHERE number BETWEEN ? AND ?", bounds)
            database.execute("DELETE FROM document WHERE number = ?", (number,))
            database.execute("INSERT INTO removed VALUES (NULL, ?, ?, ?)", (number, first, passages))
        return count

    def compact_removed(self) -> None:
        """Merge the rows of adjacent removed passages."""
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

"""A short and slow engine in memory that scans everything; tests compare other engines with it."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from capr.documents import CaprError, Document
from capr.index import (
    PASSAGES,
    PIECES,
    SENTENCES,
    SPACES,
    Clause,
    Filters,
    PassageEntry,
    PassageKey,
    PassageMatch,
    PassageVectors,
    Patient,
    PreparedDocument,
    Space,
    SpaceStats,
    SpanVectors,
    Stats,
    StoredPassage,
)
from capr.index.filters import ASPECT, DAY
from capr.index.protocol import EVERYTHING, OtherModelError
from capr.runtime.identity import EncoderIdentity, Vector
from capr.segment import Cutting
from capr.testing.matching import day_of, passes, values_of, words_of

Fields = Mapping[str, list[str]]  # the words of each field of a passage


class StoredDocument:
    """A document, the order of its first passage, and the vectors of each passage by space and index."""

    def __init__(self, prepared: PreparedDocument, first: int) -> None:
        self.prepared, self.first = prepared, first
        document = prepared.document
        metadata = json.loads(json.dumps(document.metadata))
        self.document = Document(document.id, document.text, document.title, metadata, document.annotations)
        self.vectors = {space.name: dict(enumerate(vectors)) for space, vectors in prepared.vectors.items()}

    def of(self, space: Space) -> dict[int, PassageVectors]:
        """Return the vectors of a space by the index of the passage."""
        return self.vectors.setdefault(space.name, {})

    def parts(self, space: Space, index: int) -> Vector | None:
        """Return the vectors of a passage as rows, one for each part; None if it has none."""
        vectors = self.of(space).get(index)
        if isinstance(vectors, bytes):
            return None
        if isinstance(vectors, SpanVectors):
            return vectors.vectors if len(vectors.vectors) else None
        return None if vectors is None else vectors[None]

    def passage(self, index: int) -> StoredPassage:
        """Return a passage."""
        entries = self.prepared.entries
        return StoredPassage(
            entries[index], self.document.title, self.document.metadata, len(entries), self.first + index
        )


class ReferenceIndex:
    """An index in memory that scans all documents; see `Index`."""

    def __init__(self) -> None:
        self._documents: dict[str, StoredDocument] = {}
        self._next = 1
        self._encoders: dict[str, EncoderIdentity] = {}
        self._cuttings = [Cutting()]
        self._writing = False

    @contextmanager
    def writing(self) -> Iterator[ReferenceWriter]:
        if self._writing:
            raise CaprError(f"it is being written by process {os.getpid()}. Fix: wait.")
        self._writing = True
        try:
            yield ReferenceWriter(self)
        finally:
            self._writing = False

    def _all(self, filters: Filters = EVERYTHING) -> Iterator[tuple[StoredDocument, int, PassageEntry]]:
        for stored in self._documents.values():
            for position, entry in enumerate(stored.prepared.entries):
                if passes(filters, stored.document, entry):
                    yield stored, position, entry

    # --- search ---

    def _fields(self, stored: StoredDocument, entry: PassageEntry) -> Fields:
        return {
            "text": words_of(entry.text),
            "heading": words_of(entry.passage.heading or ""),
            "title": words_of(stored.document.title),
            "entities": [m.concept.code for m in entry.mentions if m.concept],
            "aspect": [entry.aspect],
        }

    def _terms(self, clause: Clause, field: str) -> list[str]:
        return [clause.words] if field in ("entities", "aspect") else words_of(clause.words)

    def _matches(self, clause: Clause, fields: Fields) -> bool:
        terms = {field: self._terms(clause, field) for field in clause.fields}
        return any(_count(fields[field], words) for field, words in terms.items() if words)

    def _with_terms(self, clauses: Sequence[Clause]) -> list[Clause]:
        return [clause for clause in clauses if any(self._terms(clause, field) for field in clause.fields)]

    def _meets_conditions(self, clauses: Sequence[Clause], fields: Fields) -> bool:
        return all(
            self._matches(clause, fields) == (clause.occur == "must") for clause in clauses if clause.occur != "should"
        )

    def lexical(self, clauses: Sequence[Clause], k: int, filters: Filters) -> list[PassageMatch]:
        clauses = self._with_terms(clauses)
        all_fields = [self._fields(stored, entry) for stored, _, entry in self._all()]
        occurs = {clause.occur for clause in clauses}
        needs_match = not clauses or ("should" in occurs and "must" not in occurs)
        matches = []
        for stored, position, entry in self._all(filters):
            fields = self._fields(stored, entry)
            if not self._meets_conditions(clauses, fields):
                continue
            if needs_match and not any(self._matches(c, fields) for c in clauses if c.occur == "should"):
                continue
            score = sum(
                weight * self._bm25(self._terms(clause, field), field, fields, all_fields)
                for clause in clauses
                if clause.occur != "not"
                for field, weight in clause.fields.items()
            )
            matches.append(PassageMatch(PassageKey(stored.document.id, position), score, stored.first + position))
        return sorted(matches, key=lambda match: (-match.score, match.order))[:k]

    def _bm25(self, terms: Sequence[str], field: str, fields: Fields, all_fields: Sequence[Fields]) -> float:
        count = _count(fields[field], terms)
        if not count:
            return 0.0
        total = len(all_fields)
        mean = sum(len(passage[field]) for passage in all_fields) / total
        rarity = 0.0
        for term in terms:
            having = sum(term in passage[field] for passage in all_fields)
            rarity += math.log(1 + (total - having + 0.5) / (having + 0.5))
        return rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(fields[field]) / mean))

    def dense(
        self,
        vector: Vector,
        k: int,
        filters: Filters,
        clauses: Sequence[Clause] = (),
        space: Space = PASSAGES,
    ) -> list[PassageMatch]:
        model = self.encoder(space)
        if space.is_packed:
            return []
        if model is not None and model.dimensions != len(vector):
            raise OtherModelError(f"which has {model.dimensions} dimensions")
        conditions, matches = self._with_terms(clauses), []
        for stored, position, entry in self._all(filters):
            parts = stored.parts(space, position)
            if parts is not None and self._meets_conditions(conditions, self._fields(stored, entry)):
                score = float(np.mean(parts @ vector))
                matches.append(PassageMatch(PassageKey(stored.document.id, position), score, stored.first + position))
        return sorted(matches, key=lambda match: (-match.score, match.order))[:k]

    def rarity(self, words: Sequence[str], filters: Filters = EVERYTHING) -> list[float]:
        passages = [set(words_of(entry.text)) for _, _, entry in self._all(filters)]
        counts = [sum(word in passage for passage in passages) for word in words]
        return [math.log(1 + (len(passages) - n + 0.5) / (n + 0.5)) if n else 0.0 for n in counts]

    def stems(self, words: Sequence[str]) -> list[str]:
        return ["".join(words_of(word)[:1]) for word in words]

    # --- documents ---

    def digests(self, ids: Sequence[str], filters: Filters = EVERYTHING) -> dict[str, bytes]:
        known = set(ids)
        return {id: self._documents[id].prepared.digest for id in self.ids(filters) if id in known}

    def document(self, id: str, filters: Filters = EVERYTHING) -> Document | None:
        return self._documents[id].document if id in self.ids(filters) else None

    def documents(self, filters: Filters = EVERYTHING) -> Iterator[Document]:
        return (self._documents[id].document for id in self.ids(filters))

    def ids(self, filters: Filters) -> list[str]:
        of_passages = filters.entities or any(condition.name == ASPECT for condition in filters.conditions)
        return [
            id
            for id, stored in self._documents.items()
            if passes(filters, stored.document)
            and (not of_passages or any(passes(filters, stored.document, entry) for entry in stored.prepared.entries))
        ]

    def patients_of(self, ids: Sequence[str]) -> dict[str, str]:
        known = [id for id in ids if id in self._documents]
        return {id: "".join(values_of(self._documents[id].document, "patient")) or id for id in known}

    # --- passages ---

    def passages(self, keys: Sequence[PassageKey], filters: Filters = EVERYTHING) -> dict[PassageKey, StoredPassage]:
        passing = {PassageKey(stored.document.id, position): stored for stored, position, _ in self._all(filters)}
        return {key: passing[key].passage(key.passage_index) for key in keys if key in passing}

    def passages_in(self, id: str, filters: Filters = EVERYTHING) -> list[StoredPassage]:
        return [stored.passage(position) for stored, position, _ in self._all(filters) if stored.document.id == id]

    # --- vectors ---

    def vectors_of(self, content: bytes, space: Space = PASSAGES) -> list[PassageVectors] | None:
        for stored in self._documents.values():
            if stored.prepared.content == content and len(stored.of(space)) == len(stored.prepared.entries):
                return [vectors for _, vectors in sorted(stored.of(space).items())]
        return None

    def span_vectors(
        self, keys: Sequence[PassageKey], space: Space = SENTENCES, filters: Filters = EVERYTHING
    ) -> dict[PassageKey, SpanVectors]:
        passages = {
            key: self._documents[key.document].of(space).get(key.passage_index) for key in self.passages(keys, filters)
        }
        return {key: vectors for key, vectors in passages.items() if isinstance(vectors, SpanVectors)}

    def codes(
        self, keys: Sequence[PassageKey], space: Space = PIECES, filters: Filters = EVERYTHING
    ) -> dict[PassageKey, bytes]:
        passages = {
            key: self._documents[key.document].of(space).get(key.passage_index) for key in self.passages(keys, filters)
        }
        return {key: code for key, code in passages.items() if isinstance(code, bytes)}

    def without_vectors(
        self, limit: int, after: PassageKey | None = None, space: Space = PASSAGES
    ) -> list[StoredPassage]:
        last = sum(passage.order for passage in self.passages([after]).values()) if after is not None else 0
        missing = [stored.passage(position) for stored, position, _ in self._all() if position not in stored.of(space)]
        return [passage for passage in missing if passage.order > last][:limit]

    # --- contents ---

    def has(self, name: str) -> bool:
        return any(values_of(stored.document, name) for stored in self._documents.values())

    def values(self, name: str, limit: int, filters: Filters = EVERYTHING) -> list[tuple[str, int]]:
        passing = [self._documents[id] for id in self.ids(filters)]
        if name == ASPECT:
            having = [
                {e.aspect for e in stored.prepared.entries if e.aspect and passes(filters, stored.document, e)}
                for stored in passing
            ]
        elif name == DAY:
            having = [{day_of(stored.document)} - {""} for stored in passing]
        else:
            having = [values_of(stored.document, name) for stored in passing]
        counts = Counter(value for values in having for value in values)
        return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]

    def display_values(self, name: str, values: Sequence[str], filters: Filters = EVERYTHING) -> dict[str, str]:
        spellings: dict[str, str] = {}
        for id in self.ids(filters):
            for key, value in self._documents[id].document.metadata.items():
                if key.casefold() == name and str(value).strip().casefold() in values:
                    spellings.setdefault(str(value).strip().casefold(), str(value).strip())
        return spellings

    def patients(self, filters: Filters = EVERYTHING) -> list[Patient]:
        days_of: dict[str, list[str]] = {}
        for id in self.ids(filters):
            for patient in values_of(self._documents[id].document, "patient"):
                days_of.setdefault(patient, []).append(day_of(self._documents[id].document))
        patients = []
        for patient, days in sorted(days_of.items()):
            dated = sorted(filter(None, days)) or [""]
            patients.append(Patient(patient, len(days), dated[0], dated[-1]))
        return patients

    def mentioned_codes(self, filters: Filters = EVERYTHING) -> set[str]:
        return {m.concept.code for _, _, entry in self._all(filters) for m in entry.mentions if m.concept}

    def notices(self, space: Space = PASSAGES, filters: Filters = EVERYTHING) -> list[str]:
        return []

    def encoder(self, space: Space = PASSAGES) -> EncoderIdentity | None:
        return self._encoders.get(space.name)

    def cuttings(self) -> list[Cutting]:
        return self._cuttings

    def stats(self, filters: Filters = EVERYTHING) -> Stats:
        passing = [self._documents[id] for id in self.ids(filters)]
        entries = [entry for stored in passing for entry in stored.prepared.entries]
        return Stats(
            documents=len(passing),
            patients=len({value for stored in passing for value in values_of(stored.document, "patient")}),
            passages=len(entries),
            characters=sum(len(stored.document.text) for stored in passing),
            mentions=sum(len(entry.mentions) for entry in entries),
            spaces={space.name: self._space_stats(passing, space) for space in SPACES.values() if self.encoder(space)},
            disk={},
            fields=dict(
                Counter(n for stored in passing for n in stored.document.metadata if values_of(stored.document, n))
            ),
        )

    def _space_stats(self, documents: Sequence[StoredDocument], space: Space) -> SpaceStats:
        passages: list[Any] = [vectors for stored in documents for vectors in stored.of(space).values()]
        model = self.encoder(space)
        count = 0
        for vectors in passages:
            if isinstance(vectors, bytes) and model:
                count += len(vectors) // (model.dimensions // 2)
            else:
                count += len(vectors.spans) if isinstance(vectors, SpanVectors) else 1
        return SpaceStats(model, len(passages), count)

    def close(self) -> None:
        self._documents = {}


class ReferenceWriter:
    """Collects changes until they are committed; see `Writer`."""

    def __init__(self, index: ReferenceIndex) -> None:
        self._index = index
        self._pending: list[Callable[[], object]] = []

    def add(self, prepared: PreparedDocument) -> None:
        self._pending.append(lambda: self._add(prepared))

    def _add(self, prepared: PreparedDocument) -> None:
        index = self._index
        index._documents.pop(prepared.document.id, None)
        index._documents[prepared.document.id] = StoredDocument(prepared, index._next)
        index._next += len(prepared.entries)

    def remove(self, ids: Iterable[str]) -> int:
        removed = set(ids)
        self._pending.append(lambda: [self._index._documents.pop(id, None) for id in removed])
        return len(removed & self._index._documents.keys())

    def set_cutting(self, cutting: Cutting) -> None:
        self._pending.append(lambda: self._set_cutting(cutting))

    def _set_cutting(self, cutting: Cutting) -> None:
        self._index._cuttings = [*(used for used in self._index._cuttings if used != cutting), cutting]

    def set_encoder(self, encoder: EncoderIdentity | None, space: Space = PASSAGES) -> None:
        self._pending.append(lambda: self._set_encoder(encoder, space))

    def _set_encoder(self, encoder: EncoderIdentity | None, space: Space) -> None:
        current = self._index.encoder(space)
        if current is None or encoder is None or current.digest != encoder.digest:
            for stored in self._index._documents.values():
                stored.of(space).clear()
        self._index._encoders.pop(space.name, None)
        if encoder is not None:
            self._index._encoders[space.name] = encoder

    def set_vectors(self, vectors: Mapping[PassageKey, PassageVectors], space: Space = PASSAGES) -> None:
        self._pending.append(lambda: self._set_vectors(vectors, space))

    def _set_vectors(self, vectors: Mapping[PassageKey, PassageVectors], space: Space) -> None:
        for key in self._index.passages(list(vectors)):
            self._index._documents[key.document].of(space)[key.passage_index] = vectors[key]

    def commit(self) -> None:
        pending, self._pending = self._pending, []
        for change in pending:
            change()


def _count(words: Sequence[str], terms: Sequence[str]) -> int:
    """Return how often the terms occur as a phrase."""
    return sum(list(words[i : i + len(terms)]) == list(terms) for i in range(len(words) - len(terms) + 1))

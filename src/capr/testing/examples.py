"""Documents, vectors and short functions to search an index, for the tests of the contract."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from capr.annotate import Concept, Mention
from capr.annotate.context import Cue
from capr.documents import Document, Span
from capr.index import (
    PASSAGES,
    SENTENCES,
    Clause,
    Filters,
    Index,
    PassageEntry,
    PassageKey,
    PassageMatch,
    PreparedDocument,
    Space,
    SpanVectors,
    StoredPassage,
)
from capr.runtime.identity import EncoderIdentity, Vector
from capr.segment import passages
from capr.segment.cutting import MAX_WORDS

ENCODER = EncoderIdentity("tiny", "0123", 8, "/models/tiny")
PIECE_ENCODER = EncoderIdentity("tiny", "0123", 4, "/models/tiny")  # two bytes for each vector of a word piece
DISCOURSE = EncoderIdentity("tiny-cdv", "4567", 8, "/models/tiny-cdv")
ALL = Filters()
TEXT = {"text": 1.0}
FEVER = Concept("MESH:D005334", "symptom", "Fever")
ASTHMA = Concept("MESH:D001249", "disease", "Asthma")


# --- documents and vectors ---


def mention(text: str, words: str, concept: Concept, *flags: str) -> Mention:
    """Return a mention of a concept by those words, with properties."""
    begin = text.index(words)
    cues = {flag: Cue(flag, "no", None, Span(0, len(text))) for flag in flags}
    return Mention(Span(begin, begin + len(words)), concept.kind, concept, ("vocabulary",), cues)


def prepare(
    document: Document,
    mentions: Sequence[Mention] = (),
    vectors: Sequence[Vector] | None = None,
    max_words: int = MAX_WORDS,
    sentences: Sequence[SpanVectors] | None = None,
) -> PreparedDocument:
    """Return a document that is ready to be added, with optional vectors of its passages and its sentences."""
    entries = []
    for passage in passages(document, max_words):
        inside = tuple(mention for mention in mentions if passage.span.covers(mention.span))
        aspect = (passage.heading or "").lower()
        entries.append(PassageEntry(passage, document[passage.span], aspect, inside))
    whole = json.dumps(document.as_json(), sort_keys=True).encode()
    content = hashlib.sha256(f"{document.title} {document.text}".encode()).digest()
    by_space: dict[Space, Sequence[Vector | SpanVectors]] = {}
    if vectors is not None:
        by_space[PASSAGES] = vectors
    if sentences is not None:
        by_space[SENTENCES] = sentences
    return PreparedDocument(document, hashlib.sha256(whole).digest(), content, entries, by_space)


def sentences(*vectors: Vector) -> SpanVectors:
    """Return sentences of a passage with these vectors; each has ten characters."""
    spans = tuple(Span(10 * i, 10 * i + 9) for i in range(len(vectors)))
    return SpanVectors(spans, np.array(vectors, np.float32).reshape(-1, DISCOURSE.dimensions))


def unit(*values: float) -> Vector:
    """Return a vector of length 1 whose first coordinates are in that proportion."""
    vector = np.zeros(ENCODER.dimensions, np.float32)
    vector[: len(values)] = values
    normalized: Vector = vector / np.float32(np.linalg.norm(vector))
    return normalized


def note(id: str, text: str = "fever", vector: Vector | None = None, **metadata: Any) -> PreparedDocument:
    """Return a note of one passage."""
    return prepare(Document(id, text, "", metadata), vectors=None if vector is None else [vector])


def note_with_sentences(id: str, *vectors: Vector, text: str = "fever", **metadata: Any) -> PreparedDocument:
    """Return a note of one passage whose sentences have these vectors."""
    return prepare(Document(id, text, "", metadata), sentences=[sentences(*vectors)])


# --- changes ---


def add(
    index: Index,
    *documents: PreparedDocument | Document,
    encoder: EncoderIdentity | None = ENCODER,
    discourse: EncoderIdentity | None = None,
) -> None:
    """Add documents in one commit."""
    with index.writing() as writer:
        if encoder is not None:
            writer.set_encoder(encoder)
        if discourse is not None:
            writer.set_encoder(discourse, SENTENCES)
        for document in documents:
            writer.add(prepare(document) if isinstance(document, Document) else document)
        writer.commit()


def remove(index: Index, *ids: str) -> int:
    """Remove documents in one commit; return how many existed."""
    with index.writing() as writer:
        count = writer.remove(ids)
        writer.commit()
    return count


# --- searches ---


def stored(index: Index, matches: Sequence[PassageMatch]) -> list[StoredPassage]:
    """Return the passages of matches, in the same order."""
    by_key = index.passages([match.key for match in matches])
    return [by_key[match.key] for match in matches]


def names(index: Index, matches: Sequence[PassageMatch]) -> list[str]:
    """Return the document ids of matches, in the same order."""
    return [passage.key.document for passage in stored(index, matches)]


def keys(index: Index) -> list[PassageKey]:
    """Return the keys of all passages, in the order in which they were added."""
    return [passage.key for document in index.documents() for passage in index.passages_in(document.id)]


def by_words(
    index: Index,
    *words: str,
    k: int = 10,
    filters: Filters = ALL,
    fields: dict[str, float] = TEXT,
    occur: str = "should",
) -> list[str]:
    """Return the ids of documents that a lexical search finds."""
    return names(index, index.lexical([Clause(word, fields, occur) for word in words], k, filters))


def by_meaning(
    index: Index, vector: Vector, k: int = 10, filters: Filters = ALL, clauses: Sequence[Clause] = ()
) -> list[str]:
    """Return the ids of documents that a dense search finds."""
    return names(index, index.dense(vector, k, filters, clauses))


def by_sentences(
    index: Index, vector: Vector, k: int = 10, filters: Filters = ALL, clauses: Sequence[Clause] = ()
) -> list[str]:
    """Return the ids of documents that a dense search of sentences finds."""
    return names(index, index.dense(vector, k, filters, clauses, SENTENCES))


# --- notes for filters ---

NOTES: list[tuple[str, dict[str, Any], str, list[str] | None]] = [
    ("a", {"patient": "p1", "date": "2023-01-31", "type": "Discharge Summary"}, "PLAN: fever", ["negated"]),
    ("b", {"patient": "P1", "date": "2023-02", "type": "letter", "tags": ["x", "Y"]}, "PLAN: fever", ["family"]),
    ("c", {"patient": "p2", "date": "2024", "born": 1960, "tags": []}, "DIET: fever", []),
    ("d", {"patient": "p2", "date": "yesterday", "born": "1960", "ward": None}, "fever", ["negated", "family"]),
    ("e", {"date": "2023-01-31T10:00", "type": " LETTER "}, "DIET: fever", None),
]


def fill(index: Index) -> Index:
    """Add the notes for filters."""
    batch = []
    for number, (id, metadata, text, flags) in enumerate(NOTES):
        document = Document(id, text, "", metadata)
        mentions = [] if flags is None else [mention(text, "fever", FEVER, *flags)]
        batch.append(prepare(document, mentions, [unit(1, number / 10)]))
    add(index, *batch)
    return index

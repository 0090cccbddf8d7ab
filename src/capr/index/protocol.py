"""What search asks of an index, so that engines can be exchanged; `EmbeddedIndex` is the one that ships.

Every engine has to pass the contract in tests/index/test_contract.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from capr.annotate import Mention
from capr.documents import Document, Span
from capr.index.filters import Filters
from capr.segment import Passage

Vector = NDArray[np.float32]
EVERYTHING = Filters()


class Grain(StrEnum):
    """What has vectors. Each grain has a model of its own; the vectors of one say nothing to those of another."""

    PASSAGES = "passages"  # every passage has one, by an encoder
    SENTENCES = "sentences"  # every sentence of a passage has one, by a discourse model


@dataclass(frozen=True, slots=True, eq=False)
class Sentences:
    """The sentences that belong to a passage, with their vectors.

    Attributes:
        spans: of the document; a model may cut sentences otherwise than the passage does.
        vectors: (sentences, dimensions).
    """

    spans: tuple[Span, ...]
    vectors: Vector


@dataclass(frozen=True, slots=True)
class Entry:
    """A passage with what is known of it.

    Attributes:
        passage: where it is.
        text: of its span.
        aspect: what its section is about; empty if it has no heading.
        mentions: in it.
    """

    passage: Passage
    text: str
    aspect: str
    mentions: tuple[Mention, ...]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document that is ready to be kept.

    Attributes:
        document: itself.
        digest: of everything that it is.
        content: digest of what its vectors depend on; documents with the same content have the same vectors.
        entries: its passages, in the order of the text.
        vectors: one for each passage, of length 1; None while it is not encoded.
        sentences: those of each passage; None while they have no vectors.
    """

    document: Document
    digest: bytes
    content: bytes
    entries: Sequence[Entry]
    vectors: Sequence[Vector] | None = None
    sentences: Sequence[Sentences] | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """A passage that was found, with its document.

    Attributes:
        number: by which the index knows it; never used again for another.
        entry: the passage.
        title: of the document.
        metadata: of the document.
        passages: how many the document has.
    """

    number: int
    entry: Entry
    title: str
    metadata: Mapping[str, Any]
    passages: int = 0


@dataclass(frozen=True, slots=True)
class Clause:
    """Words that a passage should, must or must not have.

    Attributes:
        words: one word, or several that must follow each other; in `entities` a code, in `aspect` a name.
        fields: where (`text`, `heading`, `title`, `entities`, `aspect`), each with its weight; one is enough.
        occur: `should`, `must` or `not`.
    """

    words: str
    fields: Mapping[str, float]
    occur: str = "should"


@dataclass(frozen=True, slots=True)
class Found:
    """A passage's number and its score."""

    number: int
    score: float


@dataclass(frozen=True, slots=True)
class EncoderIdentity:
    """The model that made the vectors of a grain.

    Attributes:
        name: from its manifest.
        digest: of its files.
        dimensions: of its vectors.
        folder: where it was found last.
    """

    name: str
    digest: str
    dimensions: int
    folder: str


@dataclass(frozen=True, slots=True)
class Stats:
    """How much an index holds.

    Attributes:
        documents, patients, passages, characters, mentions: how many there are.
        vectors: passages that dense search knows.
        encoder: that made them.
        sentences: that have vectors.
        passages_with_sentences: passages that such sentences belong to.
        discourse: the model that made these.
        disk: bytes of each part of the folder.
        fields: names by which documents can be filtered, and how many documents have each.
    """

    documents: int
    patients: int
    passages: int
    characters: int
    mentions: int
    vectors: int
    encoder: EncoderIdentity | None
    sentences: int
    passages_with_sentences: int
    discourse: EncoderIdentity | None
    disk: Mapping[str, int]
    fields: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Patient:
    """A patient of an index.

    Attributes:
        patient: as the metadata have it.
        documents: how many there are.
        first, last: their first and last day, `2023-01-31`; empty if none has a date.
    """

    patient: str
    documents: int
    first: str = ""
    last: str = ""


class Writer(Protocol):
    """Changes an index. What was added or removed is there, for good and for all readers, once `commit` returns."""

    def add(self, prepared: Prepared) -> None:
        """Keeps a document; one with the same id is removed first."""

    def remove(self, ids: Iterable[str]) -> int:
        """Removes documents; the number of those that were there at the last commit."""

    def set_encoder(self, encoder: EncoderIdentity, grain: Grain = Grain.PASSAGES) -> None:
        """Names the model of all vectors of a grain to come; vectors of another one are dropped."""

    def set_vectors(self, vectors: Mapping[int, Vector]) -> None:
        """Vectors of passages that are there, by number."""

    def set_sentences(self, sentences: Mapping[int, Sentences]) -> None:
        """Sentences of passages that are there, by number, with their vectors."""

    def commit(self) -> None:
        """Makes all changes since the last commit at once."""


class Index(Protocol):
    """Keeps documents and finds passages. Any number of readers in any number of processes, one writer at a time."""

    def writing(self) -> AbstractContextManager[Writer]:
        """The right to write. Raises `CaprError` with the holder's process id while somebody else has it."""

    def digests(self, ids: Sequence[str]) -> Mapping[str, bytes]:
        """The digests of those documents that are there."""

    def vectors_of(self, content: bytes) -> Sequence[Vector] | None:
        """The vectors of a document with that content, if one is there and encoded."""

    def sentences_of(self, content: bytes) -> Sequence[Sentences] | None:
        """The sentences of each passage of a document with that content, if one is there and has their vectors."""

    def lexical(self, clauses: Sequence[Clause], k: int, filters: Filters) -> Sequence[Found]:
        """The k passages that pass the filters and match best by BM25, best first."""

    def dense(
        self,
        vector: Vector,
        k: int,
        filters: Filters,
        clauses: Sequence[Clause] = (),
        grain: Grain = Grain.PASSAGES,
    ) -> Sequence[Found]:
        """The k passages with the largest dot product that pass the filters and have what they must (not) have.

        That of a passage whose sentences have vectors is the mean of theirs.
        """

    def rarity(self, words: Sequence[str], filters: Filters = EVERYTHING) -> Sequence[float]:
        """How much it tells that a passage has a word: its inverse document frequency among those that pass.

        It is 0 for a word that none of them has.
        """

    def stems(self, words: Sequence[str]) -> Sequence[str]:
        """The forms in which words are compared."""

    def passages(self, numbers: Sequence[int]) -> Mapping[int, Stored]:
        """Passages by number; those that are there no more are left out."""

    def groups(self, numbers: Sequence[int], by: str) -> Mapping[int, str]:
        """The `document` or `patient` of each passage that is there; a document without a patient stands for itself."""

    def passages_in(self, id: str) -> Sequence[Stored]:
        """The passages of a document in the order of the text."""

    def sentences(self, numbers: Sequence[int]) -> Mapping[int, Sentences]:
        """The sentences of passages, by number; passages whose sentences have no vectors are left out."""

    def neighbours(self, number: int, distance: int) -> Sequence[Stored]:
        """The passages of the same document up to a distance before and after one, without itself."""

    def without_vectors(self, limit: int, after: int = 0, grain: Grain = Grain.PASSAGES) -> Sequence[Stored]:
        """Some passages that have no vector of a grain yet, in the order of their numbers, after a number."""

    def document(self, id: str) -> Document | None:
        """A document as it was added."""

    def documents(self, filters: Filters | None = None) -> Iterator[Document]:
        """All documents that pass the filters, in the order in which they were added."""

    def ids(self, filters: Filters) -> Sequence[str]:
        """The ids of all documents that pass, or that have a passage that passes, if passages are asked about."""

    def has(self, name: str) -> bool:
        """Whether a document has a field of that name."""

    def values(self, name: str, limit: int, filters: Filters = EVERYTHING) -> Sequence[tuple[str, int]]:
        """The most frequent values of a field with the number of documents that pass the filters and have them.

        Of a field that passages have, such as the aspect, documents count of which a passage passes and has the value.
        """

    def spelled(self, name: str, values: Sequence[str], filters: Filters = EVERYTHING) -> Mapping[str, str]:
        """Values of a field of documents as the first document that passes writes them; values compare regardless."""

    def patients(self, filters: Filters = EVERYTHING) -> Sequence[Patient]:
        """The patients of all documents that pass, in the order of their names."""

    def mentioned(self, filters: Filters = EVERYTHING) -> Set[str]:
        """The codes of all concepts that passages mention which pass."""

    def passing(self, numbers: Sequence[int], filters: Filters) -> Set[int]:
        """Those of some passages that are there and pass."""

    def notices(self, grain: Grain = Grain.PASSAGES, filters: Filters = EVERYTHING) -> Sequence[str]:
        """What a user who searches by vectors of a grain should know of the state of the passages that pass."""

    def encoder(self, grain: Grain = Grain.PASSAGES) -> EncoderIdentity | None:
        """The model that made the vectors of a grain."""

    def stats(self, filters: Filters = EVERYTHING) -> Stats:
        """How much there is in the documents that pass; what the parts take on disk is told of the whole alone."""

    def close(self) -> None:
        """Lets go of the files."""

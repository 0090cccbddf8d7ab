"""The records that an index stores and returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from capr.annotate import Mention
from capr.documents import Document, Span
from capr.index.spaces import PASSAGES, PIECES, SENTENCES, Space
from capr.runtime.identity import EncoderIdentity, Vector
from capr.segment import Passage

MAX_PROBLEMS = 100  # in the result of a verification


class PassageKey(NamedTuple):
    """Identifies a passage in any engine: the id of its document, and its index among the passages there, from 0."""

    document: str
    passage_index: int


# --- input ---


@dataclass(frozen=True, slots=True, eq=False)
class SpanVectors:
    """The parts of a passage, such as its sentences, with their vectors.

    Attributes:
        spans: offsets in the document; a model may split sentences differently from the passage.
        vectors: (parts, dimensions).
    """

    spans: tuple[Span, ...]
    vectors: Vector


PassageVectors = Vector | SpanVectors | bytes  # one vector, vectors of parts, or a code (`Space.is_packed`)


@dataclass(frozen=True, slots=True)
class PassageEntry:
    """A passage with its text and annotations.

    Attributes:
        passage: its spans and heading.
        text: the text of its span.
        aspect: the aspect of its section; empty if it has no heading.
        mentions: the mentions in it.
    """

    passage: Passage
    text: str
    aspect: str
    mentions: tuple[Mention, ...]


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """A document that is ready to be added.

    Attributes:
        document: the document.
        digest: the digest of the whole document.
        content: the digest of the parts that its vectors depend on; documents with the same content have the same
            vectors.
        entries: its passages, in the order of the text.
        vectors: by space, the vectors of each passage; a space is missing until its model has read the document.
    """

    document: Document
    digest: bytes
    content: bytes
    entries: Sequence[PassageEntry]
    vectors: Mapping[Space, Sequence[PassageVectors]] = field(default_factory=dict)


# --- output ---


class PassageMatch(NamedTuple):
    """A passage key with a score.

    Attributes:
        key: the passage.
        score: the higher, the better.
        order: of two passages with the same score, the one with the smaller order comes first. It grows with every
            addition, so that passages follow the order in which their documents were added. The passages of a
            replaced document get new ones.
    """

    key: PassageKey
    score: float
    order: int = 0


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage as the index stores it, with the title and metadata of its document.

    Attributes:
        entry: the passage.
        title: the title of the document.
        metadata: the metadata of the document.
        passages: the number of passages of the document.
        order: see `PassageMatch`.
    """

    entry: PassageEntry
    title: str
    metadata: Mapping[str, Any]
    passages: int = 0
    order: int = 0

    @property
    def key(self) -> PassageKey:
        """The key by which the index identifies it."""
        return PassageKey(self.entry.passage.document, self.entry.passage.index)


@dataclass(frozen=True, slots=True)
class Clause:
    """Words that a passage should, must or must not contain.

    Attributes:
        words: a word or a phrase; in `entities` a code, in `aspect` a name.
        fields: the fields to search (`text`, `heading`, `title`, `entities`, `aspect`) with their weights; a match in
            one field is enough.
        occur: `should`, `must` or `not`.
    """

    words: str
    fields: Mapping[str, float]
    occur: str = "should"


@dataclass(frozen=True, slots=True)
class SpaceStats:
    """The number of passages and vectors in a space.

    Attributes:
        model: the model that made the vectors; None if there are none.
        passages: the number of passages with vectors.
        vectors: the number of vectors; a passage may have several.
    """

    model: EncoderIdentity | None = None
    passages: int = 0
    vectors: int = 0


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of the contents of an index.

    Attributes:
        documents, patients, passages, characters, mentions: their numbers.
        spaces: by name, the counts of each space of vectors.
        disk: the bytes of each part.
        fields: the fields by which documents can be filtered, with the number of documents that have each.
    """

    documents: int
    patients: int
    passages: int
    characters: int
    mentions: int
    spaces: Mapping[str, SpaceStats]
    disk: Mapping[str, int]
    fields: Mapping[str, int]

    def of(self, space: Space) -> SpaceStats:
        """Return the counts of a space."""
        return self.spaces.get(space.name, SpaceStats())

    @property
    def vectors(self) -> int:
        """The number of passages that dense search can find."""
        return self.of(PASSAGES).passages

    @property
    def encoder(self) -> EncoderIdentity | None:
        """The model that made the passage vectors."""
        return self.of(PASSAGES).model

    @property
    def sentences(self) -> int:
        """The number of sentences with vectors."""
        return self.of(SENTENCES).vectors

    @property
    def passages_with_sentences(self) -> int:
        """The number of passages whose sentences have vectors."""
        return self.of(SENTENCES).passages

    @property
    def piece_vectors(self) -> int:
        """The number of vectors of word pieces."""
        return self.of(PIECES).vectors

    @property
    def discourse(self) -> EncoderIdentity | None:
        """The model that made the sentence vectors."""
        return self.of(SENTENCES).model

    def as_json(self) -> dict[str, Any]:
        """Return the counts as a plain dictionary."""
        return {
            "documents": self.documents,
            "patients": self.patients,
            "passages": self.passages,
            "characters": self.characters,
            "mentions": self.mentions,
            "vectors": self.vectors,
            "encoder": asdict(self.encoder) if self.encoder else None,
            "sentences": self.sentences,
            "passages_with_sentences": self.passages_with_sentences,
            "discourse": asdict(self.discourse) if self.discourse else None,
            "piece_vectors": self.piece_vectors,
            "disk": dict(self.disk),
            "fields": dict(self.fields),
        }


@dataclass(frozen=True, slots=True)
class Patient:
    """A patient of an index.

    Attributes:
        patient: the patient's name in the metadata.
        documents: the number of the patient's documents.
        first, last: the days of the first and the last document, `2023-01-31`; empty if none has a date.
    """

    patient: str
    documents: int
    first: str = ""
    last: str = ""


@dataclass
class Verification:
    """The result of `Maintained.verify`.

    Attributes:
        documents, passages, sentences, mentions: how many were checked.
        vectors: how many passage vectors were checked.
        sentence_vectors: how many vectors of sentences were checked.
        piece_vectors: how many vectors of word pieces were checked.
        problems: the first hundred problems; empty if the index is intact.
        notices: unfinished work, such as passages without vectors.
        repaired: derived indexes that were rebuilt, and vectors that were dropped, so that capr can encode them again.
    """

    documents: int = 0
    passages: int = 0
    sentences: int = 0
    mentions: int = 0
    vectors: int = 0
    sentence_vectors: int = 0
    piece_vectors: int = 0
    problems: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)

    def wrong(self, fact: str, fix: str) -> None:
        """Add a problem with its fix."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(f"{fact}. Fix: {fix}.")

"""The interface between search and the engines.

Every engine implements `Index` and `Writer`; `Maintained` is optional. The contract in `capr.testing` tests an engine
(docs/reference/engines.md), and `engines.py` registers it.

Three rules hold for all methods:

- A `PassageKey` identifies a passage. An engine may number passages internally, but returns no number except `order`.
- Filters apply to the same state that is returned: if a document is replaced at the same time, a method sees it either
  before or after the change, never half of each.
- Results omit unknown keys and ids, and those that the filters exclude, without an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from capr.documents import CaprError, Document
from capr.index.filters import Filters
from capr.index.records import (
    Clause,
    PassageKey,
    PassageMatch,
    PassageVectors,
    Patient,
    PreparedDocument,
    SpanVectors,
    Stats,
    StoredPassage,
    Verification,
)
from capr.index.spaces import PASSAGES, PIECES, SENTENCES, Space
from capr.runtime.identity import EncoderIdentity, Vector
from capr.segment import Cutting

EVERYTHING = Filters()
Progress = Callable[[int, int], None]  # called with the number of documents done and the total


class OtherModelError(CaprError):
    """A model other than the query's made the vectors: the library was encoded again during the search."""

    def __init__(self, model: str) -> None:
        fix = "search again, and if you name a model, name that one"
        super().__init__(f"the vectors of the library now come from another model, {model}. Fix: {fix}.")


class Writer(Protocol):
    """Changes an index. Changes become permanent, and visible to all readers, when `commit` returns."""

    def add(self, prepared: PreparedDocument) -> None:
        """Add a document with its passages; replace a document with the same id."""

    def remove(self, ids: Iterable[str]) -> int:
        """Remove documents; return how many of them existed at the last commit."""

    def set_cutting(self, cutting: Cutting) -> None:
        """Record how documents are cut from now on; see `Index.cuttings`."""

    def set_encoder(self, encoder: EncoderIdentity | None, space: Space = PASSAGES) -> None:
        """Set the model of a space, or None for no model. Drop the vectors of another model (another digest)."""

    def set_vectors(self, vectors: Mapping[PassageKey, PassageVectors], space: Space = PASSAGES) -> None:
        """Set the vectors of passages in a space.

        A passage has a code if the space is packed, `SpanVectors` if it combines parts otherwise, else one vector.
        """

    def commit(self) -> None:
        """Make all changes since the last commit, or none of them if it fails."""


class Index(Protocol):
    """Stores documents and finds passages, with one writer and any number of readers in any number of processes."""

    def writing(self) -> AbstractContextManager[Writer]:
        """Return a context with the only writer; changes that are not committed in it are lost.

        Raises:
            CaprError: another process or thread is writing. The message names it, for example by its process id.
        """

    # --- search ---

    def lexical(self, clauses: Sequence[Clause], k: int, filters: Filters) -> Sequence[PassageMatch]:
        """Return the k best passages by BM25 that match the filters, best first, then by `order`."""

    def dense(
        self,
        vector: Vector,
        k: int,
        filters: Filters,
        clauses: Sequence[Clause] = (),
        space: Space = PASSAGES,
    ) -> Sequence[PassageMatch]:
        """Return the k passages with the largest dot product in a space, best first, then by `order`.

        The passages match the filters and the clauses with `must` and `not`. In a space that combines parts, the score
        of a passage is the `Space.aggregation` of the scores of its parts; a passage without parts never matches. In a
        packed space, nothing matches.

        Raises:
            OtherModelError: the vectors have another number of dimensions than the query.
        """

    def rarity(self, words: Sequence[str], filters: Filters = EVERYTHING) -> Sequence[float]:
        """Return the inverse document frequency of each word among the passages that match the filters.

        It is 0 for a word that none of them contains.
        """

    def stems(self, words: Sequence[str]) -> Sequence[str]:
        """Return the stems by which words are compared."""

    # --- documents ---

    def digests(self, ids: Sequence[str], filters: Filters = EVERYTHING) -> Mapping[str, bytes]:
        """Return the digests of documents by id. Callers pass hundreds of ids in one call."""

    def document(self, id: str, filters: Filters = EVERYTHING) -> Document | None:
        """Return a document exactly as it was added."""

    def documents(self, filters: Filters = EVERYTHING) -> Iterator[Document]:
        """Yield all documents that match the filters, in the order in which they were added."""

    def ids(self, filters: Filters) -> Sequence[str]:
        """Return the ids of documents that match the filters.

        If the filters are about passages, a document needs a passage that matches them.
        """

    def patients_of(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the patient of each document, or its id if it has no patient."""

    # --- passages ---

    def passages(self, keys: Sequence[PassageKey], filters: Filters = EVERYTHING) -> Mapping[PassageKey, StoredPassage]:
        """Return passages by key, all from one state of the index.

        If a passage's `order` differs from that of its `PassageMatch`, its document was replaced in between.
        """

    def passages_in(self, id: str, filters: Filters = EVERYTHING) -> Sequence[StoredPassage]:
        """Return the passages of a document, in the order of the text."""

    # --- vectors ---

    def vectors_of(self, content: bytes, space: Space = PASSAGES) -> Sequence[PassageVectors] | None:
        """Return the vectors of each passage of a document with that content.

        Return None unless a document with that content has vectors for all its passages.
        """

    def span_vectors(
        self, keys: Sequence[PassageKey], space: Space = SENTENCES, filters: Filters = EVERYTHING
    ) -> Mapping[PassageKey, SpanVectors]:
        """Return the vectors of the parts of passages, in a space that combines parts and is not packed."""

    def codes(
        self, keys: Sequence[PassageKey], space: Space = PIECES, filters: Filters = EVERYTHING
    ) -> Mapping[PassageKey, bytes]:
        """Return the codes of passages in a packed space. Callers pass hundreds of keys in one call."""

    def without_vectors(
        self, limit: int, after: PassageKey | None = None, space: Space = PASSAGES
    ) -> Sequence[StoredPassage]:
        """Return some of the passages that have no vector in a space yet, in a fixed order of all passages.

        Args:
            limit: the maximum number of passages.
            after: the last passage of the previous call; None, or a passage that was removed, starts from the first.
            space: the space of the vectors.
        """

    # --- contents ---

    def has(self, name: str) -> bool:
        """Whether a document has a field of that name."""

    def values(self, name: str, limit: int, filters: Filters = EVERYTHING) -> Sequence[tuple[str, int]]:
        """Return the most frequent values of a field, each with the number of documents that have it.

        It counts the documents that match the filters. For a field of passages, such as the aspect, it counts the
        documents with a passage that matches the filters and has the value.
        """

    def display_values(self, name: str, values: Sequence[str], filters: Filters = EVERYTHING) -> Mapping[str, str]:
        """Return the spelling of each value of a field in the first document that matches the filters.

        Values are compared without case.
        """

    def patients(self, filters: Filters = EVERYTHING) -> Sequence[Patient]:
        """Return the patients of all documents that match the filters, sorted by name."""

    def mentioned_codes(self, filters: Filters = EVERYTHING) -> Set[str]:
        """Return the codes of all concepts mentioned in passages that match the filters."""

    def notices(self, space: Space = PASSAGES, filters: Filters = EVERYTHING) -> Sequence[str]:
        """Return notices for a search in a space, for example about passages without vectors."""

    def encoder(self, space: Space = PASSAGES) -> EncoderIdentity | None:
        """Return the model that made the vectors of a space."""

    def cuttings(self) -> Sequence[Cutting]:
        """Return all ways in which documents of this index were cut; the last one is current.

        The result is `(Cutting(),)` if `set_cutting` was never called.
        """

    def stats(self, filters: Filters = EVERYTHING) -> Stats:
        """Return counts of the documents that match the filters. `Stats.disk` is empty if there are filters."""

    def close(self) -> None:
        """Release files and connections."""


@runtime_checkable
class Maintained(Protocol):
    """Optional methods of an engine that maintains its data on disk."""

    def verify(self, repair: bool = False, on_progress: Progress | None = None) -> Verification:
        """Compare all stored data with its source.

        Args:
            repair: rebuild the data that can be rebuilt.
            on_progress: called with the number of documents checked and the total.
        """

    def compact(self) -> int:
        """Free the disk space of removed documents; return the number of bytes."""

    def disk(self) -> Mapping[str, int]:
        """Return the bytes of each part."""


def maintained(index: Index, location: object) -> Maintained:
    """Return an index as `Maintained`; raise `CaprError` if its engine does not implement that."""
    if not isinstance(index, Maintained):
        fact = f"the engine of {location} has no command to verify or compact it"
        raise CaprError(f"{fact}, because the engine maintains its data itself. Fix: use the tools of that engine.")
    return index

"""A part of an index: the documents that match filters. All other documents are invisible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager

from capr.documents import CaprError, Document
from capr.index.filters import PASSAGE_NAMES, Filters
from capr.index.protocol import EVERYTHING, Index, Writer
from capr.index.records import (
    Clause,
    PassageKey,
    PassageMatch,
    PassageVectors,
    Patient,
    SpanVectors,
    Stats,
    StoredPassage,
)
from capr.index.spaces import PASSAGES, PIECES, SENTENCES, Space
from capr.runtime.identity import EncoderIdentity, Vector
from capr.segment import Cutting


def about_passages(filters: Filters) -> bool:
    """Whether filters are about passages, so that they cannot select whole documents."""
    names = (*PASSAGE_NAMES, "entity")
    return bool(filters.entities or filters.without or any(c.name in names for c in filters.conditions))


class FilteredIndex:
    """The documents of an index that match the filters; all other documents are invisible. See `Index`.

    An excluded document and one that does not exist take the same path through the code, and the same time. Lexical
    search still computes the weights of words from the whole index.

    Args:
        whole: the index.
        filters: filters on documents; their values must need no lookup.
    """

    def __init__(self, whole: Index, filters: Filters) -> None:
        if about_passages(filters):
            fact = "a part of a library consists of whole documents, and this filter is about passages"
            raise CaprError(f"{fact}. Fix: filter by patient, source, type, date, or other metadata.")
        self._whole, self.filters = whole, filters

    def writing(self) -> AbstractContextManager[Writer]:
        raise CaprError("a part of a library cannot be changed. Fix: change the library itself.")

    # --- search ---

    def lexical(self, clauses: Sequence[Clause], k: int, filters: Filters) -> Sequence[PassageMatch]:
        return self._whole.lexical(clauses, k, self.filters & filters)

    def dense(
        self,
        vector: Vector,
        k: int,
        filters: Filters,
        clauses: Sequence[Clause] = (),
        space: Space = PASSAGES,
    ) -> Sequence[PassageMatch]:
        return self._whole.dense(vector, k, self.filters & filters, clauses, space)

    def rarity(self, words: Sequence[str], filters: Filters = EVERYTHING) -> Sequence[float]:
        return self._whole.rarity(words, self.filters & filters)

    def stems(self, words: Sequence[str]) -> Sequence[str]:
        return self._whole.stems(words)

    # --- documents ---

    def digests(self, ids: Sequence[str], filters: Filters = EVERYTHING) -> Mapping[str, bytes]:
        return self._whole.digests(ids, self.filters & filters)

    def document(self, id: str, filters: Filters = EVERYTHING) -> Document | None:
        return self._whole.document(id, self.filters & filters)

    def documents(self, filters: Filters = EVERYTHING) -> Iterator[Document]:
        return self._whole.documents(self.filters & filters)

    def ids(self, filters: Filters) -> Sequence[str]:
        return self._whole.ids(self.filters & filters)

    def patients_of(self, ids: Sequence[str]) -> Mapping[str, str]:
        return self._whole.patients_of(list(self._whole.digests(ids, self.filters)))

    # --- passages ---

    def passages(self, keys: Sequence[PassageKey], filters: Filters = EVERYTHING) -> Mapping[PassageKey, StoredPassage]:
        return self._whole.passages(keys, self.filters & filters)

    def passages_in(self, id: str, filters: Filters = EVERYTHING) -> Sequence[StoredPassage]:
        return self._whole.passages_in(id, self.filters & filters)

    # --- vectors; a part takes no documents, so known and missing vectors do not matter ---

    def vectors_of(self, content: bytes, space: Space = PASSAGES) -> Sequence[PassageVectors] | None:
        return None

    def span_vectors(
        self, keys: Sequence[PassageKey], space: Space = SENTENCES, filters: Filters = EVERYTHING
    ) -> Mapping[PassageKey, SpanVectors]:
        return self._whole.span_vectors(keys, space, self.filters & filters)

    def codes(
        self, keys: Sequence[PassageKey], space: Space = PIECES, filters: Filters = EVERYTHING
    ) -> Mapping[PassageKey, bytes]:
        return self._whole.codes(keys, space, self.filters & filters)

    def without_vectors(
        self, limit: int, after: PassageKey | None = None, space: Space = PASSAGES
    ) -> Sequence[StoredPassage]:
        return []

    # --- contents ---

    def has(self, name: str) -> bool:
        return bool(self._whole.values(name, 1, self.filters))

    def values(self, name: str, limit: int, filters: Filters = EVERYTHING) -> Sequence[tuple[str, int]]:
        return self._whole.values(name, limit, self.filters & filters)

    def display_values(self, name: str, values: Sequence[str], filters: Filters = EVERYTHING) -> Mapping[str, str]:
        return self._whole.display_values(name, values, self.filters & filters)

    def patients(self, filters: Filters = EVERYTHING) -> Sequence[Patient]:
        return self._whole.patients(self.filters & filters)

    def mentioned_codes(self, filters: Filters = EVERYTHING) -> Set[str]:
        return self._whole.mentioned_codes(self.filters & filters)

    def notices(self, space: Space = PASSAGES, filters: Filters = EVERYTHING) -> Sequence[str]:
        return self._whole.notices(space, self.filters & filters)

    def encoder(self, space: Space = PASSAGES) -> EncoderIdentity | None:
        return self._whole.encoder(space)

    def cuttings(self) -> Sequence[Cutting]:
        return self._whole.cuttings()

    def stats(self, filters: Filters = EVERYTHING) -> Stats:
        return self._whole.stats(self.filters & filters)

    def close(self) -> None:
        """Do nothing: the files belong to the whole index."""

"""A part of an index: the documents that pass some filters, as if there were no others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager

from capr.documents import CaprError, Document
from capr.index.filters import ID, PASSAGE_NAMES, Condition, Filters
from capr.index.protocol import (
    EVERYTHING,
    Clause,
    EncoderIdentity,
    Found,
    Grain,
    Index,
    Patient,
    Sentences,
    Stats,
    Stored,
    Vector,
    Writer,
)


def about_passages(filters: Filters) -> bool:
    """Whether filters choose passages, so that they make no part."""
    names = (*PASSAGE_NAMES, "entity")
    return bool(filters.entities or filters.without or any(c.name in names for c in filters.conditions))


class Part:
    """What passes the filters can be read and found; all else is as if it were not there. See `Index`.

    A document that is outside and one that does not exist take the same way through the code, and the same time. What
    a word of its own passages weighs in the scores of a lexical search is still counted over the whole index.

    Args:
        whole: the index.
        filters: about documents, with nothing in them that has to be looked up first.
    """

    def __init__(self, whole: Index, filters: Filters) -> None:
        if about_passages(filters):
            fact = "a part of a library is made of whole documents, and this filter is about passages of them"
            raise CaprError(f"{fact}. Fix: filter by patient, source, type, date, or other metadata.")
        self._whole, self.filters = whole, filters

    def writing(self) -> AbstractContextManager[Writer]:
        raise CaprError("a part of a library cannot be changed. Fix: change the library itself.")

    # --- finding ---

    def lexical(self, clauses: Sequence[Clause], k: int, filters: Filters) -> Sequence[Found]:
        return self._whole.lexical(clauses, k, self.filters & filters)

    def dense(
        self,
        vector: Vector,
        k: int,
        filters: Filters,
        clauses: Sequence[Clause] = (),
        grain: Grain = Grain.PASSAGES,
    ) -> Sequence[Found]:
        return self._whole.dense(vector, k, self.filters & filters, clauses, grain)

    def rarity(self, words: Sequence[str], filters: Filters = EVERYTHING) -> Sequence[float]:
        return self._whole.rarity(words, self.filters & filters)

    def stems(self, words: Sequence[str]) -> Sequence[str]:
        return self._whole.stems(words)

    # --- documents ---

    def _has(self, id: str) -> bool:
        return bool(self._whole.ids(self.filters & Filters((Condition(ID, frozenset((id,))),))))

    def digests(self, ids: Sequence[str]) -> Mapping[str, bytes]:
        return self._whole.digests([id for id in ids if self._has(id)])

    def document(self, id: str) -> Document | None:
        return self._whole.document(id) if self._has(id) else None

    def documents(self, filters: Filters | None = None) -> Iterator[Document]:
        return self._whole.documents(self.filters & (filters or EVERYTHING))

    def ids(self, filters: Filters) -> Sequence[str]:
        return self._whole.ids(self.filters & filters)

    def vectors_of(self, content: bytes) -> Sequence[Vector] | None:
        return None  # nothing can be added, so nobody needs those of a document that has the same content

    def sentences_of(self, content: bytes) -> Sequence[Sentences] | None:
        return None

    # --- passages ---

    def _inside(self, numbers: Sequence[int]) -> list[int]:
        passing = self._whole.passing(numbers, self.filters)
        return [number for number in numbers if number in passing]

    def passages(self, numbers: Sequence[int]) -> Mapping[int, Stored]:
        return self._whole.passages(self._inside(numbers))

    def groups(self, numbers: Sequence[int], by: str) -> Mapping[int, str]:
        return self._whole.groups(self._inside(numbers), by)

    def passages_in(self, id: str) -> Sequence[Stored]:
        return self._whole.passages_in(id) if self._has(id) else []

    def sentences(self, numbers: Sequence[int]) -> Mapping[int, Sentences]:
        return self._whole.sentences(self._inside(numbers))

    def neighbours(self, number: int, distance: int) -> Sequence[Stored]:
        return self._whole.neighbours(number, distance) if self._inside([number]) else []

    def without_vectors(self, limit: int, after: int = 0, grain: Grain = Grain.PASSAGES) -> Sequence[Stored]:
        found = self._whole.without_vectors(limit, after, grain)
        inside = self._whole.passing([stored.number for stored in found], self.filters)
        return [stored for stored in found if stored.number in inside]

    def passing(self, numbers: Sequence[int], filters: Filters) -> Set[int]:
        return self._whole.passing(numbers, self.filters & filters)

    # --- what there is ---

    def has(self, name: str) -> bool:
        return bool(self._whole.values(name, 1, self.filters))

    def values(self, name: str, limit: int, filters: Filters = EVERYTHING) -> Sequence[tuple[str, int]]:
        return self._whole.values(name, limit, self.filters & filters)

    def spelled(self, name: str, values: Sequence[str], filters: Filters = EVERYTHING) -> Mapping[str, str]:
        return self._whole.spelled(name, values, self.filters & filters)

    def patients(self, filters: Filters = EVERYTHING) -> Sequence[Patient]:
        return self._whole.patients(self.filters & filters)

    def mentioned(self, filters: Filters = EVERYTHING) -> Set[str]:
        return self._whole.mentioned(self.filters & filters)

    def notices(self, grain: Grain = Grain.PASSAGES, filters: Filters = EVERYTHING) -> Sequence[str]:
        return self._whole.notices(grain, self.filters & filters)

    def encoder(self, grain: Grain = Grain.PASSAGES) -> EncoderIdentity | None:
        return self._whole.encoder(grain)

    def stats(self, filters: Filters = EVERYTHING) -> Stats:
        return self._whole.stats(self.filters & filters)

    def close(self) -> None:
        """Nothing: the files are those of the whole."""

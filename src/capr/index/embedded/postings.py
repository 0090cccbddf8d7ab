"""The passages that match a filter, from arrays of document and passage numbers that are cached until a change."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from capr.index.embedded.store import Store
from capr.index.filters import DAY, ENTITY, PASSAGE_NAMES, Condition, Filters, Period, day_number

CACHED = 16  # filters and fields whose arrays are cached
Key = TypeVar("Key")
Value = TypeVar("Value")
Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]
NO_DAY = 99_999_999  # larger than any day


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """All values of a field.

    Attributes:
        values: the distinct values, sorted.
        rows: for each entry, the index of its value in `values`.
        numbers: for each entry, the document or passage that has the value.
    """

    values: list[str]
    rows: Numbers
    numbers: Numbers


class Postings:
    """The passages of one state of the library, and those that match recent filters.

    Attributes:
        alive: by number, whether a passage exists.
        passages: the number of existing passages.
    """

    def __init__(self, store: Store) -> None:
        last, _ = store.last()
        self.alive: Mask = np.ones(last + 1, bool)
        self.alive[0] = False
        for first, passages in store.removed_extents():
            self.alive[first : first + passages] = False
        self.passages = int(self.alive.sum())
        self._documents: tuple[Numbers, Numbers, Numbers] | None = None
        self._days: tuple[Numbers, Numbers] | None = None
        self._reading, self._changing = threading.Lock(), threading.Lock()
        self._masks: dict[Filters, tuple[Mask, int]] = {}
        self._documents_passing: dict[Filters, Mask] = {}
        self._columns: dict[str, Column] = {}

    def allowed(self, store: Store, filters: Filters) -> tuple[Mask, int]:
        """Return by number whether a passage matches the filters, and how many passages match them."""
        if not filters:
            return self.alive, self.passages
        mask = self._masks.get(filters)
        if mask is None:
            passing = self._passages(store, filters)
            mask = passing, int(np.count_nonzero(passing))
            self._cache(self._masks, filters, mask)
        return mask

    def ids(self, store: Store, filters: Filters) -> list[str]:
        """Return the ids of documents that match the filters, or have a passage that matches them."""
        return store.ids(self.documents(store, filters))

    def documents(self, store: Store, filters: Filters) -> list[int]:
        """Return the numbers of documents that match the filters, or have a passage that matches them."""
        numbers: list[int] = self._numbers(store, filters).tolist()
        return numbers

    def passing(self, store: Store, documents: Iterable[int], filters: Filters) -> set[int]:
        """Return which of the documents match the filters."""
        numbers, passing = self._all(store)[0], self._passing_documents(store, filters)
        candidates = np.array(list(documents), np.int64)
        rows = np.searchsorted(numbers, candidates)
        known = rows < len(numbers)
        candidates, rows = candidates[known], rows[known]
        matches: list[int] = candidates[(numbers[rows] == candidates) & passing[rows]].tolist()
        return set(matches)

    def _numbers(self, store: Store, filters: Filters) -> Numbers:
        return self._all(store)[0][self._passing_documents(store, filters)]

    def _passing_documents(self, store: Store, filters: Filters) -> Mask:
        """Return which of all documents match the filters, or have a passage that matches them."""
        passing = self._documents_passing.get(filters)
        if passing is None:
            _, first, count = self._all(store)
            passing = self._of_documents(store, filters)
            if filters.entities or any(condition.name in PASSAGE_NAMES for condition in filters.conditions):
                before = np.concatenate(([0], np.cumsum(self._passages(store, filters))))
                passing = passing & (before[first + count] > before[first])
            self._cache(self._documents_passing, filters, passing)
        return passing

    def values(self, store: Store, name: str, filters: Filters) -> list[tuple[str, int]]:
        """Return the values of a field, with the number of documents that match the filters, most frequent first."""
        column = self._column(store, name)
        rows = column.rows
        if name in PASSAGE_NAMES:
            _, first, _ = self._all(store)
            passing = self._are_allowed(self.allowed(store, filters)[0], column.numbers)
            documents = np.searchsorted(first, column.numbers[passing], "right")
            rows = np.unique(rows[passing] * (len(first) + 1) + documents) // (len(first) + 1)
        else:
            rows = rows[np.isin(column.numbers, self._numbers(store, filters))]
        counts = np.bincount(rows, minlength=len(column.values)).tolist()
        pairs = [(value, count) for value, count in zip(column.values, counts, strict=True) if count]
        return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))

    def first(self, store: Store, name: str, filters: Filters) -> dict[str, int]:
        """Return the values of a field of documents, each with the first document that has it and matches filters."""
        column = self._column(store, name)
        passing = np.isin(column.numbers, self._numbers(store, filters))
        rows, entries = np.unique(column.rows[passing], return_index=True)
        numbers = column.numbers[passing][entries].tolist()
        return {column.values[row]: number for row, number in zip(rows.tolist(), numbers, strict=True)}

    def having(self, store: Store, name: str, filters: Filters) -> list[str]:
        """Return the values of a field in the passages that match the filters."""
        column = self._column(store, name)
        passing = self._are_allowed(self.allowed(store, filters)[0], column.numbers)
        return [column.values[row] for row in np.unique(column.rows[passing]).tolist()]

    def patients(self, store: Store, filters: Filters) -> list[tuple[str, int, str, str]]:
        """Return the patients of the documents that match the filters.

        Each patient comes with the number of these documents, and the days of the first and the last one.
        """
        column = self._column(store, "patient")
        passing = np.isin(column.numbers, self._numbers(store, filters))
        rows, numbers = column.rows[passing], column.numbers[passing]
        days, dated = self._dated(store)
        order = np.argsort(dated)
        position = np.minimum(np.searchsorted(dated[order], numbers), max(0, len(dated) - 1))
        known = dated[order][position] == numbers if len(dated) else np.zeros(len(numbers), bool)
        day = days[order][position] if len(dated) else np.zeros(len(numbers), np.int64)
        first = np.full(len(column.values), NO_DAY, np.int64)
        last = np.zeros(len(column.values), np.int64)
        np.minimum.at(first, rows[known], day[known])
        np.maximum.at(last, rows[known], day[known])
        counts = np.bincount(rows, minlength=len(column.values)).tolist()
        return [
            (value, count, *(("", "") if early == NO_DAY else (_day(early), _day(late))))
            for value, count, early, late in zip(column.values, counts, first.tolist(), last.tolist(), strict=True)
            if count
        ]

    @staticmethod
    def _are_allowed(allowed: Mask, numbers: Numbers) -> Mask:
        """Return which of the passages are allowed; passages that were added after this state are not."""
        known = numbers < len(allowed)
        return known & allowed[np.where(known, numbers, 0)]

    def _column(self, store: Store, name: str) -> Column:
        """Return all values of a field, cached until a change."""
        column = self._columns.get(name)
        if column is None:
            entries = store.having_any("passage" if name in PASSAGE_NAMES else "document", name)
            order: dict[str, int] = {}
            rows = np.fromiter((order.setdefault(value, len(order)) for value, _ in entries), np.int64, len(entries))
            numbers = np.fromiter((number for _, number in entries), np.int64, len(entries))
            column = Column(list(order), rows, numbers)
            self._cache(self._columns, name, column)
        return column

    def _cache(self, cache: dict[Key, Value], key: Key, value: Value) -> None:
        """Add a value to a cache; drop the oldest value if the cache is full."""
        with self._changing:
            if len(cache) >= CACHED:
                del cache[next(iter(cache))]
            cache[key] = value

    def _passages(self, store: Store, filters: Filters) -> Mask:
        """Return by number whether a passage matches the filters."""
        _, first, count = self._all(store)
        documents = self._of_documents(store, filters)
        if documents.all():
            passing = self.alive.copy()
        else:
            size = len(self.alive) + 1
            begins = np.bincount(first[documents], minlength=size)
            ends = np.bincount((first + count)[documents], minlength=size)
            passing = (np.cumsum((begins - ends)[: size - 1]) > 0) & self.alive
        for condition in filters.conditions:
            if condition.name in PASSAGE_NAMES:
                passing &= self._with(store, condition)
        if filters.entities:
            passing &= self._with(store, Condition(ENTITY, filters.entity_values))
        return passing

    def _of_documents(self, store: Store, filters: Filters) -> Mask:
        """Return which documents match the conditions on documents."""
        numbers, _, _ = self._all(store)
        passing = np.ones(len(numbers), bool)
        for condition in filters.conditions:
            if condition.name not in PASSAGE_NAMES:
                having = self._union(store, "document", condition.name, condition.values)
                passing &= np.isin(numbers, having, invert=condition.exclude)
        for periods, exclude in ((filters.periods, False), (filters.not_days, True)):
            if periods:
                passing &= np.isin(numbers, self._within(store, periods), invert=exclude)
        return passing

    def _within(self, store: Store, periods: Sequence[Period]) -> Numbers:
        """Return the documents with a day in one of the periods."""
        days, dated = self._dated(store)
        lows = np.searchsorted(days, [day_number(since) for since, _ in periods], "left")
        highs = np.searchsorted(days, [day_number(until) for _, until in periods], "right")
        return np.concatenate([dated[low:high] for low, high in zip(lows, highs, strict=True)])

    def _with(self, store: Store, condition: Condition) -> Mask:
        """Return by number whether a passage matches a condition on passages."""
        having = self._union(store, "passage", condition.name, condition.values)
        matching = np.zeros(len(self.alive), bool)
        matching[having[having < len(self.alive)]] = True
        return ~matching if condition.exclude else matching

    def _union(self, store: Store, kind: str, name: str, values: Iterable[str]) -> Numbers:
        return np.array(store.having(kind, name, list(values)), np.int64)

    def _all(self, store: Store) -> tuple[Numbers, Numbers, Numbers]:
        """Return number, first passage and passage count of every document."""
        with self._reading:  # threads that read it at different times would count different documents
            if self._documents is None:
                rows = np.array(store.extents(len(self.alive) - 1), np.int64).reshape(-1, 3)
                self._documents = rows[:, 0].copy(), rows[:, 1].copy(), rows[:, 2].copy()
            return self._documents

    def _dated(self, store: Store) -> tuple[Numbers, Numbers]:
        """Return the days of all documents, sorted, and the document of each day."""
        if self._days is None:
            rows = store.having_any("document", DAY)
            self._days = (
                np.array([day_number(day) for day, _ in rows], np.int64),
                np.array([n for _, n in rows], np.int64),
            )
        return self._days


def _day(number: int) -> str:
    """Return the day of a number that `day_number` returned."""
    return f"{number // 10_000:04}-{number // 100 % 100:02}-{number % 100:02}"

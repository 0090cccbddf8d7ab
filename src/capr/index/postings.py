"""Which passages pass a filter: the numbers of documents and passages as arrays, kept while nothing changes."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capr.index.filters import DAY, ENTITY, PASSAGE_NAMES, Condition, Filters, Period, day_number
from capr.index.store import Store

KEPT = 16  # filters whose passages are kept
Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]
LATER = 99_999_999  # than any day


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """All values of a field.

    Attributes:
        values: each once, in their order.
        which: for each document or passage that has one, the place of the value.
        numbers: those documents or passages.
    """

    values: list[str]
    which: Numbers
    numbers: Numbers


class Postings:
    """The passages that are there, and those of every fact that was asked for.

    Attributes:
        alive: by number, whether a passage is there.
        passages: how many are.
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
        self._changing = threading.Lock()
        self._masks: dict[Filters, tuple[Mask, int]] = {}
        self._columns: dict[str, Column] = {}

    def allowed(self, store: Store, filters: Filters) -> tuple[Mask, int]:
        """By number, whether a passage passes; and how many do."""
        if not filters:
            return self.alive, self.passages
        found = self._masks.get(filters)
        if found is None:
            passing = self._passages(store, filters)
            found = passing, int(np.count_nonzero(passing))
            with self._changing:
                if len(self._masks) >= KEPT:
                    del self._masks[next(iter(self._masks))]
                self._masks[filters] = found
        return found

    def ids(self, store: Store, filters: Filters) -> list[str]:
        """Documents that pass, or of which a passage does."""
        return store.ids(self.documents(store, filters))

    def documents(self, store: Store, filters: Filters) -> list[int]:
        """The numbers of documents that pass, or of which a passage does."""
        found: list[int] = self._numbers(store, filters).tolist()
        return found

    def _numbers(self, store: Store, filters: Filters) -> Numbers:
        numbers, first, count = self._all(store)
        chosen = self._of_documents(store, filters)
        if filters.entities or any(condition.name in PASSAGE_NAMES for condition in filters.conditions):
            before = np.concatenate(([0], np.cumsum(self._passages(store, filters))))
            chosen = chosen & (before[first + count] > before[first])
        return numbers[chosen]

    def values(self, store: Store, name: str, filters: Filters) -> list[tuple[str, int]]:
        """The values of a field with the number of documents that pass and have them, the most frequent first."""
        column = self._column(store, name)
        which, documents = column.which, column.numbers
        if name in PASSAGE_NAMES:
            _, first, _ = self._all(store)
            kept = self._alive_of(self.allowed(store, filters)[0], column.numbers)
            holders = np.searchsorted(first, column.numbers[kept], "right")
            which = np.unique(which[kept] * (len(first) + 1) + holders) // (len(first) + 1)
        else:
            which = which[np.isin(documents, self._numbers(store, filters))]
        counts = np.bincount(which, minlength=len(column.values)).tolist()
        found = [(value, count) for value, count in zip(column.values, counts, strict=True) if count]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))

    def first(self, store: Store, name: str, filters: Filters) -> dict[str, int]:
        """The values of a field of documents, with the first document that passes and has each."""
        column = self._column(store, name)
        kept = np.isin(column.numbers, self._numbers(store, filters))
        which, places = np.unique(column.which[kept], return_index=True)
        numbers = column.numbers[kept][places].tolist()
        return {column.values[place]: number for place, number in zip(which.tolist(), numbers, strict=True)}

    def having(self, store: Store, name: str, filters: Filters) -> list[str]:
        """The values of a field of passages that pass."""
        column = self._column(store, name)
        kept = self._alive_of(self.allowed(store, filters)[0], column.numbers)
        return [column.values[place] for place in np.unique(column.which[kept]).tolist()]

    def patients(self, store: Store, filters: Filters) -> list[tuple[str, int, str, str]]:
        """Each patient of a document that passes, with the number of these, their first and their last day."""
        column = self._column(store, "patient")
        kept = np.isin(column.numbers, self._numbers(store, filters))
        days, dated = self._dated(store)
        order = np.argsort(dated)
        place = np.minimum(np.searchsorted(dated[order], column.numbers[kept]), max(0, len(dated) - 1))
        known = dated[order][place] == column.numbers[kept] if len(dated) else np.zeros(int(kept.sum()), bool)
        which, day = column.which[kept], days[order][place] if len(dated) else np.zeros(int(kept.sum()), np.int64)
        first = np.full(len(column.values), LATER, np.int64)
        last = np.zeros(len(column.values), np.int64)
        np.minimum.at(first, which[known], day[known])
        np.maximum.at(last, which[known], day[known])
        counts = np.bincount(which, minlength=len(column.values)).tolist()
        return [
            (value, count, *(("", "") if early == LATER else (_day(early), _day(late))))
            for value, count, early, late in zip(column.values, counts, first.tolist(), last.tolist(), strict=True)
            if count
        ]

    @staticmethod
    def _alive_of(allowed: Mask, numbers: Numbers) -> Mask:
        """Which of some passages are allowed; those that were added after this state are not."""
        known = numbers < len(allowed)
        return known & allowed[np.where(known, numbers, 0)]

    def _column(self, store: Store, name: str) -> Column:
        """All values of a field, kept while nothing changes."""
        found = self._columns.get(name)
        if found is None:
            rows = store.having_any("passage" if name in PASSAGE_NAMES else "document", name)
            places: dict[str, int] = {}
            which = np.fromiter((places.setdefault(value, len(places)) for value, _ in rows), np.int64, len(rows))
            found = Column(list(places), which, np.fromiter((number for _, number in rows), np.int64, len(rows)))
            with self._changing:
                if len(self._columns) >= KEPT:
                    del self._columns[next(iter(self._columns))]
                self._columns[name] = found
        return found

    def _passages(self, store: Store, filters: Filters) -> Mask:
        """Passages that pass."""
        _, first, count = self._all(store)
        chosen = self._of_documents(store, filters)
        if chosen.all():
            passing = self.alive.copy()
        else:
            size = len(self.alive) + 1
            edges = np.bincount(first[chosen], minlength=size) - np.bincount((first + count)[chosen], minlength=size)
            passing = (np.cumsum(edges[: size - 1]) > 0) & self.alive
        for condition in filters.conditions:
            if condition.name in PASSAGE_NAMES:
                passing &= self._with(store, condition)
        if filters.entities:
            passing &= self._with(store, Condition(ENTITY, filters.entity_values))
        return passing

    def _of_documents(self, store: Store, filters: Filters) -> Mask:
        """Documents that pass what is asked of documents."""
        numbers, _, _ = self._all(store)
        passing = np.ones(len(numbers), bool)
        for condition in filters.conditions:
            if condition.name not in PASSAGE_NAMES:
                having = self._union(store, "document", condition.name, condition.values)
                passing &= np.isin(numbers, having, invert=condition.exclude)
        for periods, out in ((filters.periods, False), (filters.not_days, True)):
            if periods:
                passing &= np.isin(numbers, self._within(store, periods), invert=out)
        return passing

    def _within(self, store: Store, periods: Sequence[Period]) -> Numbers:
        """Documents of one of some periods."""
        days, dated = self._dated(store)
        lows = np.searchsorted(days, [day_number(since) for since, _ in periods], "left")
        highs = np.searchsorted(days, [day_number(until) for _, until in periods], "right")
        return np.concatenate([dated[low:high] for low, high in zip(lows, highs, strict=True)])

    def _with(self, store: Store, condition: Condition) -> Mask:
        """Passages that have one of the values, or none of them."""
        having = self._union(store, "passage", condition.name, condition.values)
        found = np.zeros(len(self.alive), bool)
        found[having[having < len(self.alive)]] = True
        return ~found if condition.exclude else found

    def _union(self, store: Store, of: str, name: str, values: Iterable[str]) -> Numbers:
        return np.array(store.having(of, name, list(values)), np.int64)

    def _all(self, store: Store) -> tuple[Numbers, Numbers, Numbers]:
        """Number, first passage and number of passages of every document."""
        if self._documents is None:
            rows = np.array(store.extents(len(self.alive) - 1), np.int64).reshape(-1, 3)
            self._documents = rows[:, 0].copy(), rows[:, 1].copy(), rows[:, 2].copy()
        return self._documents

    def _dated(self, store: Store) -> tuple[Numbers, Numbers]:
        """The days in their order, and their documents."""
        if self._days is None:
            rows = store.having_any("document", DAY)
            self._days = (
                np.array([day_number(day) for day, _ in rows], np.int64),
                np.array([n for _, n in rows], np.int64),
            )
        return self._days


def _day(number: int) -> str:
    """The day of a number that `day_number` gave."""
    return f"{number // 10_000:04}-{number // 100 % 100:02}-{number % 100:02}"

"""Which passages pass a filter: the numbers of documents and passages as arrays, kept while nothing changes."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from capr.index.filters import DAY, ENTITY, PASSAGE_NAMES, Condition, Filters, Period, day_number
from capr.index.store import Store

KEPT = 16  # filters whose passages are kept
Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]


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
        numbers, first, count = self._all(store)
        chosen = self._of_documents(store, filters)
        if filters.entities or any(condition.name in PASSAGE_NAMES for condition in filters.conditions):
            before = np.concatenate(([0], np.cumsum(self._passages(store, filters))))
            chosen = chosen & (before[first + count] > before[first])
        return store.ids(numbers[chosen].tolist())

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

"""Search a view by words or by vectors, with filters. Passages are numbers here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from capr.index.embedded.derived import Match
from capr.index.embedded.store import Store
from capr.index.embedded.views import View
from capr.index.embedded.words import has_words
from capr.index.filters import Filters
from capr.index.protocol import OtherModelError
from capr.index.records import Clause
from capr.index.spaces import Space
from capr.runtime.identity import Vector

# The word index itself applies a filter that leaves a smaller share of the passages than NARROW. It is slow at filters
# with more than MANY values, so that for these the share is NARROW_OF_MANY.
NARROW, NARROW_OF_MANY, MANY = 0.15, 0.02, 50
MAX_NEAREST = 10_000  # neighbours to fetch before listing all passages that match the clauses
MAX_LISTED = 5000  # passages with the words of a clause that are listed before the vector search


def lexical(view: View, store: Store, clauses: Sequence[Clause], k: int, filters: Filters) -> list[Match]:
    """See `Index.lexical`."""
    allowed, passing = view.postings.allowed(store, filters)
    if not passing:
        return []
    values = sum(len(condition.values) for condition in filters.conditions)
    if passing < (NARROW if values <= MANY else NARROW_OF_MANY) * view.postings.passages:
        return view.words.search(clauses, k, filters, allowed)
    limit = int(1.2 * k * view.postings.passages / passing) if filters else k
    return view.words.search(clauses, k, None, allowed, limit)


def dense(
    view: View, store: Store, vector: Vector, k: int, filters: Filters, clauses: Sequence[Clause], space: Space
) -> list[Match]:
    """See `Index.dense`."""
    vectors = view.vectors.get(space)
    if vectors is None or not len(vectors):
        return []
    if len(vector) != vectors.state.dimensions:
        raise OtherModelError(f"which has {vectors.state.dimensions} dimensions")
    allowed, passing = view.postings.allowed(store, filters)
    conditions = [clause for clause in clauses if clause.occur != "should" and has_words(clause)]
    if not conditions:
        return vectors.search(vector, k, allowed, bool(filters)) if passing else []
    allowed = _with_words(view, conditions, allowed, MAX_LISTED)
    limit = k
    while True:
        nearest = vectors.search(vector, limit, allowed, True)
        passing_clauses = view.words.among(conditions, [match.number for match in nearest])
        best = [match for match in nearest if match.number in passing_clauses]
        if len(best) >= k or len(nearest) < limit:
            return best[:k]
        limit *= 4
        if limit > MAX_NEAREST:
            allowed = _with_words(view, conditions, allowed, len(view.words))


def _with_words(view: View, conditions: Sequence[Clause], allowed: Any, limit: int) -> Any:
    """Return which of the allowed passages match the clauses; skip a clause if more than `limit` passages match it."""
    must = [clause for clause in conditions if clause.occur == "must"]
    lists = [(must, True)] if must else []
    lists += [([replace(clause, occur="must")], False) for clause in conditions if clause.occur == "not"]
    for clauses, include in lists:
        matches = view.words.search(clauses, limit + 1)
        numbers = [match.number for match in matches if match.number < len(allowed)]
        if len(numbers) <= limit:
            matching = np.zeros_like(allowed)
            matching[numbers] = True
            allowed = allowed & (matching if include else ~matching)
    return allowed


def rarity(view: View, store: Store, words: Sequence[str], filters: Filters) -> list[float]:
    """See `Index.rarity`."""
    counts = [view.words.frequency(word, filters) for word in words]
    if not filters and view.postings.passages < len(view.postings.alive) - 1:  # counts may include removed passages
        counts = [count if view.words.has(word) else 0 for word, count in zip(words, counts, strict=True)]
    total = max(view.postings.allowed(store, filters)[1] if filters else len(view.words), *counts, 0)
    return [math.log(1 + (total - count + 0.5) / (count + 0.5)) if count else 0.0 for count in counts]

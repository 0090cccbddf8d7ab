"""Fusion: one ranking out of several."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from capr.index import Found

RANK = 60
Ranking = Sequence[Found]


def reciprocal(rankings: Mapping[str, Ranking]) -> list[Found]:
    """The sum of 1 / (60 + rank); scores need not be comparable.

    Reference: Cormack, Clarke and Büttcher, Reciprocal rank fusion outperforms Condorcet and individual rank learning
    methods, 2009.
    """
    totals: dict[int, float] = defaultdict(float)
    for ranking in rankings.values():
        for rank, found in enumerate(ranking, 1):
            totals[found.number] += 1 / (RANK + rank)
    return _sorted(totals)


def normalised(rankings: Mapping[str, Ranking]) -> list[Found]:
    """The mean of the scores, each brought to 0 (the last of its ranking) to 1 (the first); 0 where it is missing.

    Reference: Shaw and Fox, Combination of multiple searches (CombSUM), 1994.
    """
    totals: dict[int, float] = defaultdict(float)
    for ranking in rankings.values():
        scores = [found.score for found in ranking]
        low, high = min(scores, default=0.0), max(scores, default=0.0)
        for found in ranking:
            share = (found.score - low) / (high - low) if high > low else 1.0
            totals[found.number] += share / len(rankings)
    return _sorted(totals)


FUSIONS: Mapping[str, Callable[[Mapping[str, Ranking]], list[Found]]] = {
    "reciprocal": reciprocal,
    "scores": normalised,
}


def _sorted(totals: Mapping[int, float]) -> list[Found]:
    return sorted((Found(n, score) for n, score in totals.items()), key=lambda f: (-f.score, f.number))

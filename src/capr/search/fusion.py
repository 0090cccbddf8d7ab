"""Fusion: one ranking out of several."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from statistics import fmean, pstdev

from capr.index import Found

RANK = 60
WEIGHTS = {"lexical": 0.5, "dense": 1.0, "cdv": 1.0, "rerank": 2.0}  # docs/results.md says how they were chosen
Ranking = Sequence[Found]
Stages = Sequence[tuple[str, Ranking]]  # with the names of the weights


def reciprocal(stages: Stages) -> list[Found]:
    """The sum of 1 / (60 + rank); scores need not be comparable.

    Reference: Cormack, Clarke and Büttcher, Reciprocal rank fusion outperforms Condorcet and individual rank learning
    methods, 2009.
    """
    totals: dict[int, float] = defaultdict(float)
    for _, ranking in stages:
        for rank, found in enumerate(ranking, 1):
            totals[found.number] += 1 / (RANK + rank)
    return _sorted(totals)


def normalised(stages: Stages) -> list[Found]:
    """The weighted mean of the scores, each brought to 0 (the last of its ranking) to 1 (the first); 0 if missing.

    Reference: Shaw and Fox, Combination of multiple searches (CombSUM), 1994.
    """
    totals: dict[int, float] = defaultdict(float)
    whole = sum(WEIGHTS[name] for name, _ in stages)
    for name, ranking in stages:
        scores = [found.score for found in ranking]
        low, high = min(scores, default=0.0), max(scores, default=0.0)
        for found in ranking:
            share = (found.score - low) / (high - low) if high > low else 1.0
            totals[found.number] += share * WEIGHTS[name] / whole
    return _sorted(totals)


def reranked(ordered: Ranking, stages: Stages) -> list[Found]:
    """The passages of the last stage, a ranker, in the order of all stages together; then the others as they were.

    The score is the weighted mean of what the stages give, in standard deviations from the mean of those passages. What
    a stage has not found counts there as its last passage.

    Args:
        ordered: the candidates, best first.
        stages: the last is the ranker's.
    """
    read = {found.number for found in stages[-1][1]}
    among = [found.number for found in ordered if found.number in read]
    weights = [WEIGHTS[name] for name, _ in stages]
    totals = dict.fromkeys(among, 0.0)
    for weight, (_, ranking) in zip(weights, stages, strict=True):
        known = {found.number: found.score for found in ranking}
        last = min(known.values(), default=0.0)
        scores = [known.get(number, last) for number in among]
        for number, score in zip(among, _standard(scores), strict=True):
            totals[number] += weight / sum(weights) * score
    best = _sorted(totals)
    lowest = best[-1].score if best else 0.0
    others = [found.number for found in ordered if found.number not in read]
    return best + [Found(number, lowest - place) for place, number in enumerate(others, 1)]


class Fusion(StrEnum):
    """Ways to join two rankings."""

    scores = "scores"
    reciprocal = "reciprocal"


FUSIONS: Mapping[str, Callable[[Stages], list[Found]]] = {
    Fusion.scores: normalised,
    Fusion.reciprocal: reciprocal,
}
DEFAULT = "scores"


def _sorted(totals: Mapping[int, float]) -> list[Found]:
    return sorted((Found(n, score) for n, score in totals.items()), key=lambda f: (-f.score, f.number))


def _standard(scores: Sequence[float]) -> list[float]:
    """In standard deviations from their mean."""
    if not scores:
        return []
    mean, deviation = fmean(scores), pstdev(scores)
    return [(score - mean) / deviation if deviation else 0.0 for score in scores]

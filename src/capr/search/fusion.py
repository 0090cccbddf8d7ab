"""Fusion: combine several rankings into one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from statistics import fmean, pstdev

from capr.index.records import PassageKey, PassageMatch

RANK = 60  # the constant of reciprocal rank fusion
# docs/results.md describes the choice of the weights; that of `late` has not been measured yet.
WEIGHTS = {"lexical": 0.5, "dense": 1.0, "cdv": 1.0, "late": 1.0, "rerank": 2.0}
Ranking = Sequence[PassageMatch]
Stages = Sequence[tuple[str, Ranking]]  # the name of each stage, as in WEIGHTS, and its ranking


def reciprocal(stages: Stages) -> list[PassageMatch]:
    """Return the passages by the sum of 1 / (60 + rank), which needs no comparable scores.

    Reference: Cormack, Clarke and Büttcher, Reciprocal rank fusion outperforms Condorcet and individual rank learning
    methods, 2009.
    """
    totals: dict[PassageKey, float] = defaultdict(float)
    for _, ranking in stages:
        for rank, match in enumerate(ranking, 1):
            totals[match.key] += 1 / (RANK + rank)
    return _sorted(totals, [ranking for _, ranking in stages])


def normalised(stages: Stages) -> list[PassageMatch]:
    """Return the passages by the weighted mean of their normalised scores.

    In each ranking, the scores are scaled to the range from 0 (the last passage) to 1 (the first). A passage that a
    ranking lacks has 0 there.

    Reference: Shaw and Fox, Combination of multiple searches (CombSUM), 1994.
    """
    totals: dict[PassageKey, float] = defaultdict(float)
    total_weight = sum(WEIGHTS[name] for name, _ in stages)
    for name, ranking in stages:
        scores = [match.score for match in ranking]
        low, high = min(scores, default=0.0), max(scores, default=0.0)
        for match in ranking:
            share = (match.score - low) / (high - low) if high > low else 1.0
            totals[match.key] += share * WEIGHTS[name] / total_weight
    return _sorted(totals, [ranking for _, ranking in stages])


def reranked(ordered: Ranking, stages: Stages) -> list[PassageMatch]:
    """Re-rank the candidates that a ranker has scored, and append the other candidates in their previous order.

    The score of a candidate is the weighted mean of its scores in all stages. The scores of a stage are standardised
    over the candidates that the ranker has scored. A candidate that a stage lacks has the lowest score of that stage.

    Args:
        ordered: the candidates, best first.
        stages: all stages; the last one is the ranker.
    """
    ranker_keys = {match.key for match in stages[-1][1]}
    keys = [match.key for match in ordered if match.key in ranker_keys]
    weights = [WEIGHTS[name] for name, _ in stages]
    totals = dict.fromkeys(keys, 0.0)
    for weight, (_, ranking) in zip(weights, stages, strict=True):
        stage_scores = {match.key: match.score for match in ranking}
        lowest = min(stage_scores.values(), default=0.0)
        scores = [stage_scores.get(key, lowest) for key in keys]
        for key, score in zip(keys, _standardised(scores), strict=True):
            totals[key] += weight / sum(weights) * score
    best = _sorted(totals, [ordered])
    last_score = best[-1].score if best else 0.0
    others = [match for match in ordered if match.key not in ranker_keys]
    return best + [match._replace(score=last_score - rank) for rank, match in enumerate(others, 1)]


class Fusion(StrEnum):
    """The methods of fusion."""

    scores = "scores"
    reciprocal = "reciprocal"


FUSIONS: Mapping[str, Callable[[Stages], list[PassageMatch]]] = {
    Fusion.scores: normalised,
    Fusion.reciprocal: reciprocal,
}
DEFAULT = "scores"


def _sorted(totals: Mapping[PassageKey, float], rankings: Iterable[Ranking]) -> list[PassageMatch]:
    """Sort passages by score. Passages with equal scores keep the order in which their documents were added."""
    order: dict[PassageKey, int] = {}
    for match in (match for ranking in rankings for match in ranking):
        order[match.key] = max(match.order, order.get(match.key, match.order))  # the newest state of the document
    matches = (PassageMatch(key, score, order[key]) for key, score in totals.items())
    return sorted(matches, key=lambda match: (-match.score, match.order, match.key))


def _standardised(scores: Sequence[float]) -> list[float]:
    """Return the scores in standard deviations from their mean."""
    if not scores:
        return []
    mean, deviation = fmean(scores), pstdev(scores)
    return [(score - mean) / deviation if deviation else 0.0 for score in scores]

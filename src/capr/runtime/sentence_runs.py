"""Find the run of sentences that answers a query, from the scores of the sentences, without passage boundaries.

CDV (Arnold et al., 2020, section 4.3) leaves this step to future work: "select a coherent set of sentences as answers".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from capr.documents import Span


class Run(NamedTuple):
    """Sentences [first, last) of a document. The score grows with the number of sentences and with their scores."""

    first: int
    last: int
    score: float


def best_run(scores: Sequence[float], threshold: float) -> Run:
    """Return the run of at least one sentence with the highest sum of score minus threshold.

    A sentence below the threshold lowers the sum. The best run therefore includes a weak sentence between two strong
    ones, but not many weak sentences.

    >>> best_run([0.1, 0.8, 0.4, 0.9, 0.1, 0.6], 0.5)
    Run(first=1, last=4, score=0.6)
    """
    if not len(scores):
        return Run(0, 0, 0.0)
    best = Run(0, 1, float("-inf"))
    first, total = 0, 0.0
    for position, score in enumerate(scores):
        if total <= 0:
            first, total = position, 0.0
        total += float(score) - threshold
        if total > best.score:
            best = Run(first, position + 1, total)
    return best._replace(score=round(best.score, 6))


def answer(scores: Sequence[float], share: float) -> Run:
    """Return the best run for a threshold that depends on the document; its score is the mean of its sentences' scores.

    The threshold lies a `share` of the way from the mean of the scores to the highest score. A fixed threshold would
    not fit all documents, because a document that is about the entity has higher scores throughout.

    >>> answer([0.1, 0.8, 0.4, 0.9, 0.1, 0.1], 0.2)
    Run(first=1, last=4, score=0.7)
    """
    if not len(scores):
        return Run(0, 0, 0.0)
    mean = sum(scores) / len(scores)
    run = best_run(scores, mean + share * (max(scores) - mean))
    return run._replace(score=round(sum(scores[run.first : run.last]) / (run.last - run.first), 6))


def span_of(spans: Sequence[Span], run: Run) -> Span:
    """Return the span of a run, from the start of its first sentence to the end of its last."""
    return Span(spans[run.first].begin, spans[run.last - 1].end) if run.last > run.first else Span(0, 0)

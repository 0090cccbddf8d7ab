"""Runs of sentences: the answer in a document that has no passage boundaries, by the scores of its sentences.

CDV (Arnold et al., 2020, section 4.3) leaves this step for later: "select a coherent set of sentences as answers".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from capr.documents import Span


class Run(NamedTuple):
    """Sentences [first, last) of a document; the higher the score, the more and the better they answer."""

    first: int
    last: int
    score: float


def best_run(scores: Sequence[float], threshold: float) -> Run:
    """The run of sentences whose scores exceed the threshold most, all together; one sentence at least.

    A sentence below the threshold inside of it costs as much as it lacks, so that a weak one between two strong ones
    is kept, and a long weak stretch is not.

    >>> best_run([0.1, 0.8, 0.4, 0.9, 0.1, 0.6], 0.5)
    Run(first=1, last=4, score=0.6)
    """
    if not len(scores):
        return Run(0, 0, 0.0)
    best = Run(0, 1, float("-inf"))
    first, total = 0, 0.0
    for place, score in enumerate(scores):
        if total <= 0:
            first, total = place, 0.0
        total += float(score) - threshold
        if total > best.score:
            best = Run(first, place + 1, total)
    return best._replace(score=round(best.score, 6))


def answer(scores: Sequence[float], share: float) -> Run:
    """The best run above a share of the way from the mean of a document's scores to the highest; its score is its mean.

    How much a whole document is about the entity moves all of its scores alike, so that no fixed threshold fits all.

    >>> answer([0.1, 0.8, 0.4, 0.9, 0.1, 0.1], 0.2)
    Run(first=1, last=4, score=0.7)
    """
    if not len(scores):
        return Run(0, 0, 0.0)
    mean = sum(scores) / len(scores)
    run = best_run(scores, mean + share * (max(scores) - mean))
    return run._replace(score=round(sum(scores[run.first : run.last]) / (run.last - run.first), 6))


def span_of(spans: Sequence[Span], run: Run) -> Span:
    """The characters of a run, from the begin of its first sentence to the end of its last."""
    return Span(spans[run.first].begin, spans[run.last - 1].end) if run.last > run.first else Span(0, 0)

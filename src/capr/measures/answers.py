"""Measures of answers: exact match and F1 as in SQuAD, and the calibration of a reader's confidence.

References: Rajpurkar et al., SQuAD: 100,000+ Questions for Machine Comprehension of Text, 2016; Guo et al., On
Calibration of Modern Neural Networks, 2017.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

ARTICLES = re.compile(r"\b(?:a|an|the)\b")
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
BINS = 10


def normalised(answer: str) -> str:
    """Return the form in which answers compare: lower case, single spaces, no ASCII punctuation, no articles.

    >>> normalised("The  25-mg dose, an hour ago.")
    '25mg dose hour ago'
    """
    return " ".join(ARTICLES.sub(" ", answer.lower().translate(NO_PUNCTUATION)).split())


def exact_match(answer: str, gold: Iterable[str]) -> float:
    """Return 1 if an answer equals a gold answer, else 0."""
    return float(any(normalised(answer) == normalised(gold_answer) for gold_answer in gold))


def f1(answer: str, gold: Iterable[str]) -> float:
    """Return the F1 of the words of an answer and a gold answer: the highest value over all gold answers.

    >>> f1("40 mg daily", ["lisinopril 40 mg"])
    0.6666666666666666
    """
    words = normalised(answer).split()
    return max((_f1(words, normalised(gold_answer).split()) for gold_answer in gold), default=0.0)


def _f1(words: Sequence[str], gold: Sequence[str]) -> float:
    common = sum((Counter(words) & Counter(gold)).values())
    return 2 * common / (len(words) + len(gold)) if common else 0.0


class Bin(NamedTuple):
    """Answers of about the same confidence.

    Attributes:
        low: the lower limit of the confidence.
        high: the upper limit of the confidence.
        answers: the number of answers.
        confidence: their average confidence.
        right: the share of right answers.
    """

    low: float
    high: float
    answers: int
    confidence: float
    right: float


def reliability(answers: Sequence[tuple[float, bool]], bins: int = BINS) -> list[Bin]:
    """Group answers into bins of equal width by their confidence.

    Args:
        answers: the confidence of each answer, and whether the answer is right.
        bins: the number of bins.

    Returns:
        The bins with at least one answer, from the lowest confidence to the highest.
    """
    members: list[list[tuple[float, bool]]] = [[] for _ in range(bins)]
    for confidence, right in answers:
        members[min(bins - 1, max(0, int(confidence * bins)))].append((confidence, right))
    return [
        Bin(
            low=i / bins,
            high=(i + 1) / bins,
            answers=len(group),
            confidence=_mean([confidence for confidence, _ in group]),
            right=_mean([float(right) for _, right in group]),
        )
        for i, group in enumerate(members)
        if group
    ]


def calibration_error(answers: Sequence[tuple[float, bool]], bins: int = BINS) -> float:
    """Return the expected calibration error: the average distance of the confidence from the share of right answers.

    Args:
        answers: the confidence of each answer, and whether the answer is right.
        bins: the number of bins.
    """
    total = sum(group.answers * abs(group.confidence - group.right) for group in reliability(answers, bins))
    return total / max(1, len(answers))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)

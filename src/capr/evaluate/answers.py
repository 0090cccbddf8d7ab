"""Exact match and F1 of answers as SQuAD measures them, and how far a reader's confidence can be trusted.

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
    """The form in which answers are compared: lower case, no ASCII punctuation, no articles, single blanks.

    >>> normalised("The  25-mg dose, an hour ago.")
    '25mg dose hour ago'
    """
    return " ".join(ARTICLES.sub(" ", answer.lower().translate(NO_PUNCTUATION)).split())


def exact_match(answer: str, gold: Iterable[str]) -> float:
    """1 if an answer is one of those that count, else 0."""
    return float(any(normalised(answer) == normalised(one) for one in gold))


def f1(answer: str, gold: Iterable[str]) -> float:
    """The F1 of the answer's words, with the gold answer with which it is highest.

    >>> f1("40 mg daily", ["lisinopril 40 mg"])
    0.6666666666666666
    """
    return max((_f1(normalised(answer).split(), normalised(one).split()) for one in gold), default=0.0)


def _f1(words: Sequence[str], gold: Sequence[str]) -> float:
    common = sum((Counter(words) & Counter(gold)).values())
    return 2 * common / (len(words) + len(gold)) if common else 0.0


class Bin(NamedTuple):
    """Answers of about the same confidence: how many, how confident on average, and how many of them are right."""

    low: float
    high: float
    answers: int
    confidence: float
    right: float


def reliability(answers: Sequence[tuple[float, bool]], bins: int = BINS) -> list[Bin]:
    """The answers, given by confidence and whether they are right, in bins of equal width; empty bins are left out."""
    parts: list[list[tuple[float, bool]]] = [[] for _ in range(bins)]
    for confidence, right in answers:
        parts[min(bins - 1, max(0, int(confidence * bins)))].append((confidence, right))
    return [
        Bin(i / bins, (i + 1) / bins, len(part), _mean([c for c, _ in part]), _mean([float(r) for _, r in part]))
        for i, part in enumerate(parts)
        if part
    ]


def calibration_error(answers: Sequence[tuple[float, bool]], bins: int = BINS) -> float:
    """The expected calibration error: how far confidence is from the share that is right, on average over answers."""
    found = reliability(answers, bins)
    return sum(one.answers * abs(one.confidence - one.right) for one in found) / max(1, len(answers))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)

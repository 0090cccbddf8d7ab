"""How alike two answers are: SQuAD's exact match and F1 of words.

Reference: Rajpurkar et al., SQuAD, 2016, and its evaluation script.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised(answer: str) -> str:
    """In lower case, without ASCII punctuation and articles, words separated by single blanks.

    >>> normalised("The  dose: 2.5 mg.")
    'dose 25 mg'
    """
    return " ".join(ARTICLES.sub(" ", answer.lower().translate(PUNCTUATION)).split())


def exact(answer: str, other: str) -> float:
    """1 if both are the same after normalisation, else 0."""
    return float(normalised(answer) == normalised(other))


def f1(answer: str, other: str) -> float:
    """The harmonic mean of precision and recall of words, each as often as it stands there; 0 without a common word.

    >>> round(f1("500 mg of aspirin", "the aspirin, 500 mg"), 3)
    0.857
    """
    one, two = normalised(answer).split(), normalised(other).split()
    same = sum((Counter(one) & Counter(two)).values())
    return 2 * same / (len(one) + len(two)) if same else 0.0


def best_f1(answer: str, golds: Iterable[str]) -> float:
    """The F1 with the gold answer that is most alike; 0 if there is none."""
    return max((f1(answer, gold) for gold in golds), default=0.0)


def best_exact(answer: str, golds: Iterable[str]) -> float:
    """Whether one of the gold answers is the same."""
    return max((exact(answer, gold) for gold in golds), default=0.0)

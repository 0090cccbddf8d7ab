"""Entity-level precision, recall and F1: an entity counts if its words and its type are all right (CoNLL 2000)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import capr
from capr.annotate.tagger import Tagger
from capr.documents import Span


class Score(NamedTuple):
    """Micro-averaged over all entities."""

    precision: float
    recall: float
    f1: float


def score(expected: Collection[object], found: Collection[object]) -> Score:
    """Compares two sets.

    >>> score({1, 2, 3, 4}, {1, 2, 5})
    Score(precision=0.6666666666666666, recall=0.5, f1=0.5714285714285714)
    """
    right = len(set(expected) & set(found))
    return Score(
        right / len(found) if found else 0.0,
        right / len(expected) if expected else 0.0,
        2 * right / (len(expected) + len(found)) if expected or found else 0.0,
    )


def evaluate(tagger: Tagger, path: Path) -> Mapping[str, Score]:
    """The score of each type that a CoNLL file annotates.

    The sentences of the file are put one under the other, so that the tagger reads them as it reads a document.
    """
    text, cut, expected = "", [], set()
    for document in capr.read(path, format="conll", strict=True):
        begin = len(text)
        text += document.text + "\n"
        cut.append(Span(begin, len(text) - 1))
        for mention in document.annotated("mention"):
            expected.add((begin + mention.span.begin, begin + mention.span.end, mention.value["type"]))
    found = {(*tagged.span, tagged.type) for tagged in tagger.tag(text, cut)}
    return {
        kind: score({e for e in expected if e[2] == kind}, {f for f in found if f[2] == kind})
        for kind in sorted({kind for _, _, kind in expected})
    }

"""Measure entity-level precision, recall and F1: an entity counts if its span and its type are right (CoNLL 2000)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from capr.documents import Span, read
from capr.runtime.tagger import Tagger


class Score(NamedTuple):
    """Precision, recall and F1, micro-averaged over all entities."""

    precision: float
    recall: float
    f1: float


def score(expected: Collection[object], predicted: Collection[object]) -> Score:
    """Compare the expected entities with the predicted ones.

    >>> score({1, 2, 3, 4}, {1, 2, 5})
    Score(precision=0.6666666666666666, recall=0.5, f1=0.5714285714285714)
    """
    correct = len(set(expected) & set(predicted))
    return Score(
        correct / len(predicted) if predicted else 0.0,
        correct / len(expected) if expected else 0.0,
        2 * correct / (len(expected) + len(predicted)) if expected or predicted else 0.0,
    )


def evaluate(tagger: Tagger, path: Path) -> Mapping[str, Score]:
    """Return the score of each type that a CoNLL file annotates.

    The tagger reads the sentences of the file as one document, one sentence on each line.
    """
    text, sentences, expected = "", [], set()
    for document in read(path, format="conll", strict=True):
        begin = len(text)
        text += document.text + "\n"
        sentences.append(Span(begin, len(text) - 1))
        for mention in document.annotated("mention"):
            expected.add((begin + mention.span.begin, begin + mention.span.end, mention.value["type"]))
    predicted = {(*tagged.span, tagged.type) for tagged in tagger.tag(text, sentences)}
    return {
        kind: score(
            {entity for entity in expected if entity[2] == kind}, {entity for entity in predicted if entity[2] == kind}
        )
        for kind in sorted({kind for _, _, kind in expected})
    }

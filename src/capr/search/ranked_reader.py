"""A reader that asks a ranker for a second opinion: does the paragraph answer, whatever the words that were read?

A reader knows which words would answer, a ranker which passage speaks of what was asked; each errs where the other does
not. `ranked.json` in a reader's folder says how both are joined, and was fitted to that reader and that ranker on
reports that neither had learned from (tools/reader/join.py).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from capr.documents import CaprError
from capr.search.reader import AnswerReader, Reading, sigmoid, unread
from capr.search.rerank import Ranker

FILE = "ranked.json"
SUREST = 6  # paragraphs that the ranker reads
LEAST = 1e-6  # of a confidence, and of what is left to 1


@dataclass(frozen=True, slots=True)
class Joint:
    """How a reader's confidence c and a ranker's score are one: sigmoid(confidence logit(c) + score d + bias).

    d is how far the score is below the best that the ranker gives to a paragraph for the same question, as 0 or less:
    scores of different questions cannot be compared.

    Attributes:
        ranker: the name of the one that it was fitted with.
        confidence, score, bias: the weights.
        threshold: a confidence below which there is no answer.
    """

    ranker: str
    confidence: float
    score: float
    bias: float
    threshold: float

    def joined(self, confidence: float, below: float) -> float:
        """What both say together, from 0 to 1."""
        return sigmoid(self.confidence * logit(confidence) + self.score * below + self.bias)

    @classmethod
    def read(cls, folder: Path) -> Joint | None:
        """That of a reader's folder; None if it has none.

        Raises:
            CaprError: the file is not what it should be.
        """
        path = folder / FILE
        if not path.is_file():
            return None
        try:
            found = json.loads(path.read_text("utf-8"))
            ranker = found.pop("ranker")
            weights = {name: float(value) for name, value in found.items()}
            if not isinstance(ranker, str) or not all(map(math.isfinite, weights.values())):
                raise ValueError("a weight is no number")
            return cls(ranker, **weights)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            names = ", ".join(field.name for field in fields(cls))
            fix = f"write an object with {names}, or remove the file to read without a ranker"
            raise CaprError(f"{path} does not say how to join a reader with a ranker ({error}). Fix: {fix}.") from error

    def write(self, folder: Path) -> None:
        """Writes it into a reader's folder."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        (folder / FILE).write_text(json.dumps(values, indent=1) + "\n", "utf-8")


class RankedReader:
    """Reads as its reader does, and asks the ranker about the paragraphs of which that is surest.

    The others count as if they had the lowest score of those that the ranker has read.

    Args:
        reader: that reads answers.
        ranker: that scores paragraphs.
        joint: how both are one.
    """

    def __init__(self, reader: AnswerReader, ranker: Ranker, joint: Joint) -> None:
        self.reader, self.ranker, self.joint = reader, ranker, joint
        self.name, self.threshold = reader.name, joint.threshold

    def read(self, question: str, paragraphs: Sequence[str], best: int = 1) -> list[list[Reading]]:
        """For each paragraph its most likely answers, as the reader has read them, each with the joint confidence."""
        found = self.reader.read(question, paragraphs, best)
        order = sorted((n for n, some in enumerate(found) if some), key=lambda n: -found[n][0].confidence)[:SUREST]
        if not order:
            return found
        scores = self.ranker.scores(question, [paragraphs[n] for n in order])
        below = {n: score - max(scores) for n, score in zip(order, scores, strict=True)}
        lowest = min(below.values())
        return [
            [replace(one, confidence=self.joint.joined(one.confidence, below.get(n, lowest))) for one in some]
            for n, some in enumerate(found)
        ]

    def unread(self, question: str) -> str:
        """As that of the reader."""
        return unread(self.reader, question)


def logit(share: float) -> float:
    """The inverse of `sigmoid`; what is all but 0 or 1 counts as a millionth, or all but one.

    >>> logit(0.5), round(logit(1.0), 1)
    (0.0, 13.8)
    """
    share = min(max(share, LEAST), 1 - LEAST)
    return math.log(share / (1 - share))

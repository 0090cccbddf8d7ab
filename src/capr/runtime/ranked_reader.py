"""A reader that combines its confidence with the score that a ranker gives to the paragraph.

A reader judges the words of an answer, a ranker judges whether the paragraph is about the question; they make different
errors. `ranked.json` in a reader's folder has the weights of both. tools/reader/join.py fits them to that reader and
that ranker, on reports that are in the training data of neither.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from capr.documents import CaprError
from capr.runtime.ranker import Ranker
from capr.runtime.reader import AnswerReader, ReadAnswer, sigmoid, unread

FILE = "ranked.json"
SUREST = 6  # the number of paragraphs that the ranker reads
LEAST = 1e-6  # the minimum distance of a confidence from 0 and 1


@dataclass(frozen=True, slots=True)
class Joint:
    """The weights that join a reader's confidence c and a ranker's score.

    The joint confidence is sigmoid(confidence logit(c) + score d + bias). Here d is the score minus the highest
    score for the same question, so at most 0; the scores of different questions are not comparable.

    Attributes:
        ranker: the name of the ranker that the weights were fitted to.
        confidence, score, bias: the weights.
        threshold: the minimum confidence of an answer.
    """

    ranker: str
    confidence: float
    score: float
    bias: float
    threshold: float

    def joined(self, confidence: float, below: float) -> float:
        """Return the joint confidence, 0 to 1."""
        return sigmoid(self.confidence * logit(confidence) + self.score * below + self.bias)

    @classmethod
    def read(cls, folder: Path) -> Joint | None:
        """Read the weights of a reader's folder; return None if it has none.

        Raises:
            CaprError: the file is invalid.
        """
        path = folder / FILE
        if not path.is_file():
            return None
        try:
            record = json.loads(path.read_text("utf-8"))
            ranker = record.pop("ranker")
            weights = {name: float(value) for name, value in record.items()}
            if not isinstance(ranker, str) or not all(map(math.isfinite, weights.values())):
                raise ValueError("a weight is not a number")
            return cls(ranker, **weights)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            names = ", ".join(field.name for field in fields(cls))
            fix = f"write an object with {names}, or remove the file to read without a ranker"
            raise CaprError(f"{path} does not say how to join a reader with a ranker ({error}). Fix: {fix}.") from error

    def write(self, folder: Path) -> None:
        """Write the weights into a reader's folder."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        (folder / FILE).write_text(json.dumps(values, indent=1) + "\n", "utf-8")


class RankedReader:
    """A reader whose confidence includes the scores of a ranker.

    The ranker reads the paragraphs with the most confident answers. All other paragraphs get the lowest of these
    scores.

    Args:
        reader: the reader of the answers.
        ranker: the ranker that scores the paragraphs.
        joint: the weights of both.
    """

    def __init__(self, reader: AnswerReader, ranker: Ranker, joint: Joint) -> None:
        self.reader, self.ranker, self.joint = reader, ranker, joint
        self.name, self.threshold = reader.name, joint.threshold

    def read(self, question: str, paragraphs: Sequence[str], best: int = 1) -> list[list[ReadAnswer]]:
        """Return the reader's most likely answers of each paragraph, with the joint confidence."""
        answers = self.reader.read(question, paragraphs, best)
        surest = [i for i, group in enumerate(answers) if group]
        surest = sorted(surest, key=lambda i: -answers[i][0].confidence)[:SUREST]
        if not surest:
            return answers
        scores = self.ranker.scores(question, [paragraphs[i] for i in surest])
        below = {i: score - max(scores) for i, score in zip(surest, scores, strict=True)}
        lowest = min(below.values())
        return [
            [replace(answer, confidence=self.joint.joined(answer.confidence, below.get(i, lowest))) for answer in group]
            for i, group in enumerate(answers)
        ]

    def unread(self, question: str) -> str:
        """Return the end of a question that is too long for the reader."""
        return unread(self.reader, question)


def logit(share: float) -> float:
    """Return the inverse of `sigmoid`, for a share limited to one millionth from 0 and 1.

    >>> logit(0.5), round(logit(1.0), 1)
    (0.0, 13.8)
    """
    share = min(max(share, LEAST), 1 - LEAST)
    return math.log(share / (1 - share))

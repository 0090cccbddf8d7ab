"""Readers of answers: a question and paragraphs to the words that answer it, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from capr.documents import Span


@dataclass(frozen=True, slots=True)
class Reading:
    """Words of a paragraph that may answer a question.

    Attributes:
        span: of the paragraph's text.
        confidence: from 0 to 1, how likely it is that this paragraph answers the question with these words.
    """

    span: Span
    confidence: float


class AnswerReader(Protocol):
    """Reads answers out of paragraphs."""

    name: str
    threshold: float  # a confidence below which there is no answer

    def read(self, question: str, paragraphs: Sequence[str], best: int = 1) -> list[list[Reading]]:
        """For each paragraph its most likely answers, the best first, at most so many.

        None only for a paragraph without words: whether there is an answer at all is for the threshold to say.
        """

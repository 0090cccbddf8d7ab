"""Readers of answers: a question and paragraphs to the words that answer it, and how sure that is."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from capr.documents import CaprError, Span
from capr.index.onnx import OnnxModel
from capr.search.reading import Cutter, Extracted, Extractor, Window


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

        Whole words, all of one block of lines. None only for a paragraph without words: whether there is an answer at
        all is for the threshold to say.
        """


class OnnxReader:
    """The reader of a folder (see `capr.index.onnx`): a network that scores where an answer begins and ends.

    Its confidence is sigmoid(m / t + b), where m is how much likelier the words are than no answer (the difference of
    their log-probabilities) and t and b were fitted on reports that it had not learned from: of the answers with a
    confidence of 0.8, about 80 % are right. The paper's own confidence ranks paragraphs by how unlikely it is that
    they have no answer; `calibrated=False` gives that, as 1 - p(none).

    Args:
        folder: that has it.
        threads: of ONNX Runtime; 0 for as many as there are cores.
        file: the network.
        calibrated: which confidence; the threshold is for the calibrated one.

    Raises:
        CaprError: the folder holds no reader.

    Reference: Lanz and Pecina, Paragraph Retrieval for Enhanced Question Answering in Clinical Documents, 2024.
    """

    def __init__(
        self, folder: str | os.PathLike[str], threads: int = 0, file: str = "model.onnx", calibrated: bool = True
    ) -> None:
        self._model = OnnxModel(Path(folder), "reader", threads, file)
        self.manifest = self._model.manifest
        self.name, self.threshold, self._calibrated = self.manifest.name, self.manifest.threshold, calibrated
        self._cutter = Cutter(self._model.tokenizer, self.manifest.pieces, self.manifest.stride, self.manifest.question)
        self._extractor = Extractor(self._cutter, self._scores, self.manifest.answer)
        shape = self._scores(list(self._cutter.windows("a", "a"))).shape
        if len(shape) != 3 or shape[2] != 2:
            fact = f"its model gives an array of shape {shape} for a window"
            raise CaprError(f"{folder} is no reader: {fact}. Fix: export it with two scores for each word piece.")

    def read(self, question: str, paragraphs: Sequence[str], best: int = 1) -> list[list[Reading]]:
        """For each paragraph its most likely answers that do not overlap, the best first, at most so many.

        Of a question that is longer than the manifest's `question` pieces, the first ones are read (see `unread`).

        Raises:
            CaprError: the question is empty.
        """
        if not question.strip():
            raise CaprError("the question is empty. Fix: ask something, such as: What dose of aspirin was given?")
        found = self.extract([(question, paragraph) for paragraph in paragraphs], best)
        return [[Reading(one.span, self.confidence(one)) for one in some] for some in found]

    def unread(self, question: str) -> str:
        """The end of a question that is too long to be read as a whole; empty if it is not."""
        return self._cutter.unread(question)

    def extract(self, pairs: Sequence[tuple[str, str]], best: int = 1) -> list[list[Extracted]]:
        """For each question and paragraph what `read` makes its readings of, with the log-probabilities."""
        return self._extractor.extract(pairs, best)

    def confidence(self, found: Extracted) -> float:
        """From 0 to 1, how sure it is of an answer."""
        if not self._calibrated:
            return 1 - math.exp(found.null)
        return sigmoid(found.margin / self.manifest.temperature + self.manifest.bias)

    def _scores(self, windows: Sequence[Window]) -> NDArray[np.float32]:
        return self._model.states(windows)[0]


def sigmoid(value: float) -> float:
    """1 / (1 + exp(-value)), of any number.

    >>> sigmoid(0.0), sigmoid(-1e9)
    (0.5, 0.0)
    """
    small = math.exp(-abs(value))
    return 1 / (1 + small) if value >= 0 else small / (1 + small)


def unread(reader: AnswerReader, question: str) -> str:
    """The end of a question that a reader does not read, of those that can tell."""
    tell: Callable[[str], str] | None = getattr(reader, "unread", None)
    return tell(question) if tell else ""


def load_reader(folder: str | os.PathLike[str], threads: int = 0) -> AnswerReader:
    """The reader of a folder."""
    return OnnxReader(folder, threads)

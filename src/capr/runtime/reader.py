"""Readers: models that mark the words of paragraphs that answer a question, with a confidence."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from capr.documents import CaprError, Span
from capr.runtime.extraction import AnswerExtractor, Cutter, ExtractedAnswer, ReaderWindow
from capr.runtime.manifest import Manifest
from capr.runtime.onnx import FILES, read_manifest
from capr.runtime.pieces import PieceModel


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """Words of a paragraph that may answer a question.

    Attributes:
        span: the span in the paragraph's text.
        confidence: the estimated probability, 0 to 1, that these words of the paragraph answer the question.
    """

    span: Span
    confidence: float


class AnswerReader(Protocol):
    """A model that reads answers in paragraphs."""

    name: str
    threshold: float  # the minimum confidence of an answer

    def read(self, question: str, paragraphs: Sequence[str], best: int = 1) -> list[list[ReadAnswer]]:
        """Return for each paragraph its most likely answers, at most `best`, the best first.

        An answer is whole words of one block of lines. Only a paragraph without words has no answer here; callers
        compare the confidence with the threshold to decide whether there is an answer.
        """


@runtime_checkable
class NotifyingReader(Protocol):
    """A reader with notices about its reading, for example about the server that it asked."""

    def read_with_notices(
        self, question: str, paragraphs: Sequence[str], best: int = 1
    ) -> tuple[list[list[ReadAnswer]], list[str], str]:
        """Return the answers of `AnswerReader.read`, notices for the user, and the name of the model that answered."""


@dataclass(frozen=True)
class ReaderManifest(Manifest):
    """The manifest of a reader.

    Attributes:
        pieces: the maximum number of word pieces of a window.
        stride: the number of word pieces that neighbouring windows share.
        question: the maximum number of word pieces of a question; the rest is not read.
        answer: the maximum number of word pieces of an answer; 0 for any number.
        temperature, bias: the parameters of the confidence, see `OnnxReader`.
        threshold: the minimum confidence of an answer.
    """

    kind: str = "reader"
    pieces: int = 256
    stride: int = 128
    question: int = 192
    answer: int = 128
    temperature: float = 1.0
    bias: float = 0.0
    threshold: float = 0.5


class OnnxReader:
    """The reader of a folder (see `capr.runtime.onnx`): a network that scores where an answer begins and ends.

    The confidence is sigmoid(m / t + b). The margin m is the log-probability of the words minus that of no answer. The
    manifest's temperature t and bias b were fitted on reports outside the training data, so that about 80% of the
    answers with a confidence of 0.8 are right. The paper has another confidence, 1 - p(no answer), which ranks
    paragraphs; `calibrated=False` selects it.

    Args:
        folder: the folder of the reader.
        threads: the number of threads of ONNX Runtime; 0 for one per core.
        file: the file of the network.
        calibrated: whether to return the calibrated confidence, which the threshold is for.

    Raises:
        CaprError: the folder holds no reader.

    Reference: Lanz and Pecina, Paragraph Retrieval for Enhanced Question Answering in Clinical Documents, 2024.
    """

    def __init__(
        self, folder: str | os.PathLike[str], threads: int = 0, file: str = "model.onnx", calibrated: bool = True
    ) -> None:
        self.manifest = self.read_manifest(Path(folder))
        self._model = PieceModel(Path(folder), self.manifest.pieces, threads=threads, file=file)
        self.name, self.threshold, self._calibrated = self.manifest.name, self.manifest.threshold, calibrated
        self._cutter = Cutter(self._model.tokenizer, self.manifest.pieces, self.manifest.stride, self.manifest.question)
        self._extractor = AnswerExtractor(self._cutter, self._scores, self.manifest.answer)
        shape = self._scores(list(self._cutter.windows("a", "a"))).shape
        if len(shape) != 3 or shape[2] not in (2, 3):
            fact = f"its model gives an array of shape {shape} for a window"
            raise CaprError(
                f"{folder} is not a reader: {fact}. Fix: export it with two or three scores for each word piece."
            )

    @staticmethod
    def read_manifest(folder: Path, needed: Sequence[str] = FILES) -> ReaderManifest:
        """Return the manifest of a reader's folder."""
        manifest = read_manifest(folder, ReaderManifest, "reader", needed)
        if manifest.temperature <= 0:
            fix = "write a number above 0"
            raise CaprError(f"{folder / 'manifest.json'} has temperature {manifest.temperature}. Fix: {fix}.")
        return manifest

    def read(self, question: str, paragraphs: Sequence[str], best: int = 1) -> list[list[ReadAnswer]]:
        """Return for each paragraph its most likely answers without overlap, at most `best`, the best first.

        A question with more word pieces than the manifest's `question` is truncated (see `unread`).

        Raises:
            CaprError: the question is empty.
        """
        if not question.strip():
            raise CaprError("the question is empty. Fix: ask something, such as: What dose of aspirin was given?")
        extracted = self.extract([(question, paragraph) for paragraph in paragraphs], best)
        return [[ReadAnswer(answer.span, self.confidence(answer)) for answer in answers] for answers in extracted]

    def unread(self, question: str) -> str:
        """Return the end of a question that is too long to be read as a whole; empty if it is short enough."""
        return self._cutter.unread(question)

    def extract(self, pairs: Sequence[tuple[str, str]], best: int = 1) -> list[list[ExtractedAnswer]]:
        """Return for each question and paragraph the answers of `read` with their log-probabilities."""
        return self._extractor.extract(pairs, best)

    def confidence(self, answer: ExtractedAnswer) -> float:
        """Return the confidence of an answer, 0 to 1."""
        if not self._calibrated:
            return 1 - math.exp(answer.null)
        return sigmoid(answer.margin / self.manifest.temperature + self.manifest.bias)

    def _scores(self, windows: Sequence[ReaderWindow]) -> NDArray[np.float32]:
        return self._model.states(windows)[0]


def sigmoid(value: float) -> float:
    """Return 1 / (1 + exp(-value)), without overflow.

    >>> sigmoid(0.0), sigmoid(-1e9)
    (0.5, 0.0)
    """
    small = math.exp(-abs(value))
    return 1 / (1 + small) if value >= 0 else small / (1 + small)


def unread(reader: AnswerReader, question: str) -> str:
    """Return the end of a question that a reader does not read; empty if the reader has no method `unread`."""
    method: Callable[[str], str] | None = getattr(reader, "unread", None)
    return method(question) if method else ""

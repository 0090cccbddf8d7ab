"""Re-ranking: a model that reads query and passage together puts the best candidates in order."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from capr.documents import CaprError
from capr.index.onnx import Floats, OnnxModel


class Ranker(Protocol):
    """Query and passages to scores, the higher the better."""

    def scores(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        """One for each passage."""


class OnnxRanker:
    """The ranker of a folder (see `capr.index.onnx`): a cross-encoder with one output."""

    def __init__(
        self, folder: str | os.PathLike[str], threads: int = 0, file: str = "model.onnx", pieces: int = 0
    ) -> None:
        self._model = OnnxModel(Path(folder), "ranker", threads, file, pieces)
        outputs = self._model.run([("a", "b")]).shape[1]
        if outputs != 1:
            fact = f"its model gives {outputs} numbers for a pair of texts"
            raise CaprError(f"{folder} is no ranker: {fact}. Fix: export a cross-encoder with one output.")

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        if not passages:
            return []
        found = self._model.run([(query, passage) for passage in passages])
        return [float(score) for score in found[:, 0]]


@dataclass(frozen=True, slots=True)
class Kept:
    """The vectors of a passage's tokens in 8 bits, so that a query need not wait for the encoder to read it."""

    codes: NDArray[np.int8]  # (tokens, dimensions)
    scales: Floats  # (tokens, 1)


class OnnxPoly:
    """The poly-encoder of a folder: keeps passages as token vectors, to which the vector of a query attends.

    Reference: see `capr.models.poly`.
    """

    def __init__(
        self, folder: str | os.PathLike[str], threads: int = 0, file: str = "model.onnx", pieces: int = 0
    ) -> None:
        folder = Path(folder)
        self._passages = OnnxModel(folder, "poly", threads, file, pieces)
        self._queries = OnnxModel(folder, "poly", threads, file.replace("model", "query"))
        self.manifest = self._passages.manifest
        projection = folder / "projection.npy"
        self._projection = np.load(projection) if projection.is_file() else None

    def keep(self, passages: Sequence[str]) -> list[Kept]:
        """Passages as token vectors."""
        texts = [self.manifest.passage + text for text in passages]
        return [_kept(tokens[counts]) for tokens, counts in self._passages.tokens(texts)]

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        return self.scores_kept(query, self.keep(passages))

    def scores_kept(self, query: str, passages: Sequence[Kept]) -> list[float]:
        """One pass of the encoder for the query, and a small attention for each passage."""
        asked = self._queries.run([self.manifest.query + query])[0]  # (dimensions,)
        return [self._score(asked, kept.codes.astype(np.float32) * kept.scales) for kept in passages]

    def _score(self, asked: Floats, tokens: Floats) -> float:
        products = tokens @ asked * np.float32(self.manifest.scale)  # (tokens,)
        weights = np.exp(products - products.max())
        attended = weights @ tokens / weights.sum()  # (dimensions,)
        if self._projection is not None:
            attended = np.maximum(self._projection @ attended, 0)
        score = float(attended @ asked)
        if self.manifest.similarity == "cosine":
            score /= max(float(np.linalg.norm(attended) * np.linalg.norm(asked)), 1e-12)
        return score


def _kept(tokens: Floats) -> Kept:
    scales = np.maximum(np.abs(tokens).max(axis=1, keepdims=True), 1e-12) / np.float32(127)
    return Kept(np.rint(tokens / scales).astype(np.int8), scales.astype(np.float32))

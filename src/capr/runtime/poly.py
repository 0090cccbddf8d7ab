"""Poly-encoders: rankers that store the token vectors of passages; the vector of a query attends to them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from capr.documents import CaprError
from capr.runtime.manifest import Manifest
from capr.runtime.onnx import FILES, QUERY, Floats, read_manifest
from capr.runtime.pieces import two_sides


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """The token vectors of a passage in 8 bits; with them, a query need not wait for the encoder."""

    codes: NDArray[np.int8]  # (tokens, dimensions)
    scales: Floats  # (tokens, 1)


@dataclass(frozen=True)
class PolyManifest(Manifest):
    """The manifest of a poly-encoder.

    Attributes:
        dimensions: the number of values of a vector.
        pooling: how to pool the vectors of a query's pieces: `cls` or `mean`.
        pieces: the maximum number of word pieces of a text.
        query: the prefix of queries.
        passage: the prefix of passages.
        scale: the factor of the products before the softmax.
        similarity: how vectors are compared: `cosine` or `dot`.
        codes: the number of vectors stored for a passage; 0 for one per piece.
    """

    kind: str = "poly"
    dimensions: int = 0
    pooling: str = "cls"
    pieces: int = 256
    query: str = ""
    passage: str = ""
    scale: float = 1.0
    similarity: str = "cosine"
    codes: int = 0


class OnnxPoly:
    """The poly-encoder of a folder. It stores passages as token vectors; the vector of a query attends to them.

    Reference: see `capr.models.poly`.
    """

    def __init__(
        self, folder: str | os.PathLike[str], threads: int = 0, file: str = "model.onnx", pieces: int = 0
    ) -> None:
        folder = Path(folder)
        self.manifest = manifest = self.read_manifest(folder)
        self._passages, queries = two_sides(folder, pieces, manifest, threads, file)
        if queries is None:
            fix = "copy the folder of the model again"
            raise CaprError(f"{folder} is not a poly-encoder: it has no {QUERY}. Fix: {fix}.")
        self._queries = queries
        projection = folder / "projection.npy"
        self._projection = np.load(projection) if projection.is_file() else None

    @staticmethod
    def read_manifest(folder: Path, needed: Sequence[str] = FILES) -> PolyManifest:
        """Return the manifest of a poly-encoder's folder."""
        return read_manifest(folder, PolyManifest, "poly", needed)

    def keep(self, passages: Sequence[str]) -> list[TokenVectors]:
        """Return the token vectors of passages, for `scores_kept`."""
        texts = [self.manifest.passage + text for text in passages]
        if self.manifest.codes:
            return [_quantise(codes) for codes in self._passages.codes(texts)]
        return [_quantise(vectors[mask]) for vectors, mask in self._passages.tokens(texts)]

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        return self.scores_kept(query, self.keep(passages))

    def scores_kept(self, query: str, passages: Sequence[TokenVectors]) -> list[float]:
        """Return a score for each passage: the encoder reads the query alone, which then attends to each passage."""
        vector = self._queries.run([self.manifest.query + query])[0]  # (dimensions,)
        return [self._score(vector, passage.codes.astype(np.float32) * passage.scales) for passage in passages]

    def _score(self, query: Floats, tokens: Floats) -> float:
        products = tokens @ query * np.float32(self.manifest.scale)  # (tokens,)
        weights = np.exp(products - products.max())
        attended = weights @ tokens / weights.sum()  # (dimensions,)
        if self._projection is not None:
            attended = np.maximum(self._projection @ attended, 0)
        score = float(attended @ query)
        if self.manifest.similarity == "cosine":
            score /= max(float(np.linalg.norm(attended) * np.linalg.norm(query)), 1e-12)
        return score


def _quantise(tokens: Floats) -> TokenVectors:
    scales = np.maximum(np.abs(tokens).max(axis=1, keepdims=True), 1e-12) / np.float32(127)
    return TokenVectors(np.rint(tokens / scales).astype(np.int8), scales.astype(np.float32))

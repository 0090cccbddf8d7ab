"""Encoders: texts to vectors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from capr.documents import CaprError
from capr.index.onnx import Floats, OnnxModel, digest
from capr.index.protocol import EncoderIdentity, Vector


class Encoder(Protocol):
    """Texts to vectors of length 1, whose dot product tells how much two texts have to do with each other."""

    identity: EncoderIdentity

    def passages(self, texts: Sequence[str]) -> Floats:
        """(texts, dimensions)."""

    def query(self, text: str) -> Vector:
        """(dimensions,)."""


class OnnxEncoder:
    """The encoder of a folder; see `capr.index.onnx`. Queries have a network of their own if there is a query.onnx."""

    def __init__(
        self, folder: str | os.PathLike[str], threads: int = 0, file: str = "model.onnx", pieces: int = 0
    ) -> None:
        folder = Path(folder)
        self._model = OnnxModel(folder, "encoder", threads, file, pieces)
        own = file.replace("model", "query")
        self._queries = OnnxModel(folder, "encoder", threads, own) if (folder / own).is_file() else self._model
        manifest = self._model.manifest
        self.identity = EncoderIdentity(manifest.name, digest(folder), manifest.dimensions, str(folder.resolve()))
        found = self._model.run(["a"]).shape[1]
        if not 0 < manifest.dimensions <= found:
            fact = f"its manifest says {manifest.dimensions} dimensions, and its vectors have {found}"
            raise CaprError(f"{folder}: {fact}. Fix: write the right number into manifest.json.")

    def passages(self, texts: Sequence[str]) -> Floats:
        return self._encoded(self._model, [self._model.manifest.passage + text for text in texts])

    def query(self, text: str) -> Vector:
        vector: Vector = self._encoded(self._queries, [self._model.manifest.query + text])[0]
        return vector

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        """How well each passage answers: dot products."""
        return [float(score) for score in self.passages(passages) @ self.query(query)]

    def _encoded(self, model: OnnxModel, texts: Sequence[str]) -> Floats:
        """Vectors of length 1; of nested ones as many dimensions as the manifest says."""
        vectors = model.run(texts)[:, : model.manifest.dimensions]
        if model.manifest.similarity == "dot":
            return vectors.astype(np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        normalised: Floats = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
        return normalised

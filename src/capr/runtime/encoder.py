"""Encoders: texts to vectors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, cast

import numpy as np

from capr.documents import CaprError
from capr.runtime import late
from capr.runtime.identity import EncoderIdentity, Vector
from capr.runtime.manifest import Manifest
from capr.runtime.onnx import FILES, Floats, digest, read_manifest
from capr.runtime.pieces import PieceModel, two_sides


class Encoder(Protocol):
    """Texts to vectors of length 1; the dot product of two vectors is the similarity of the texts."""

    identity: EncoderIdentity

    def passages(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of passages: (texts, dimensions)."""

    def query(self, text: str) -> Vector:
        """Return the vector of a query: (dimensions,)."""


class LateEncoder(Encoder, Protocol):
    """An encoder that also makes vectors of word pieces, for late interaction (`capr.runtime.late`)."""

    @property
    def piece_identity(self) -> EncoderIdentity:
        """The identity of the model, with the dimensions of the vectors of word pieces."""

    def passages_with_pieces(self, texts: Sequence[str]) -> tuple[Floats, list[bytes]]:
        """Return the vectors of passages, and the codes of their word pieces."""

    def query_with_pieces(self, text: str) -> tuple[Vector, Floats]:
        """Return the vector of a query, and the vectors of its word pieces: (pieces, dimensions)."""


def late_encoder(encoder: Encoder | None) -> LateEncoder | None:
    """Return an encoder if it makes vectors of word pieces, else None."""
    return cast(LateEncoder, encoder) if getattr(encoder, "has_pieces", False) else None


@dataclass(frozen=True)
class EncoderManifest(Manifest):
    """The manifest of an encoder.

    Attributes:
        dimensions: the number of values of a vector.
        pooling: how to pool the vectors of pieces, if the network returns them: `cls` or `mean`.
        pieces: the maximum number of word pieces of a text.
        query: the prefix of queries.
        passage: the prefix of passages.
        similarity: how vectors are compared: `cosine` or `dot`.
        piece_dimensions: the number of values of the vector of a word piece; 0 if the network returns none.
        min_query_pieces: the number of pieces that a query is padded to with [MASK], for its vectors of word pieces.
    """

    kind: str = "encoder"
    dimensions: int = 0
    pooling: str = "cls"
    pieces: int = 256
    query: str = ""
    passage: str = ""
    similarity: str = "cosine"
    piece_dimensions: int = 0
    min_query_pieces: int = 0


class OnnxEncoder:
    """The encoder of a folder; see `capr.runtime.onnx`. If there is a query.onnx, that network reads the queries."""

    def __init__(
        self, folder: str | os.PathLike[str], threads: int = 0, file: str = "model.onnx", pieces: int = 0
    ) -> None:
        folder = Path(folder)
        self.manifest = manifest = self.read_manifest(folder)
        self._model, queries = two_sides(folder, pieces, manifest, threads, file)
        self._queries = queries or self._model
        self.identity = EncoderIdentity(manifest.name, digest(folder), manifest.dimensions, str(folder.resolve()))
        dimensions = self._model.run(["a"]).shape[1]
        if not 0 < manifest.dimensions <= dimensions:
            fact = f"its manifest says {manifest.dimensions} dimensions, and its vectors have {dimensions}"
            raise CaprError(f"{folder}: {fact}. Fix: write the right number into manifest.json.")
        if manifest.piece_dimensions:
            self._check_pieces(folder)

    def _check_pieces(self, folder: Path) -> None:
        """Raise an error unless the network returns the vectors of word pieces that the manifest promises."""
        outputs = self._model.output_names
        size = self._model.both_of_query("a", 0, 0)[1].shape[-1] if len(outputs) > 1 else 0
        if size != self.manifest.piece_dimensions or size % 2:
            fact = (
                f"its manifest says {self.manifest.piece_dimensions} dimensions of word pieces, and its network {size}"
            )
            raise CaprError(f"{folder}: {fact}. Fix: copy the folder again.")

    @staticmethod
    def read_manifest(folder: Path, needed: Sequence[str] = FILES) -> EncoderManifest:
        """Return the manifest of an encoder's folder."""
        return read_manifest(folder, EncoderManifest, "encoder", needed)

    def passages(self, texts: Sequence[str]) -> Floats:
        return self._encode(self._model, [self.manifest.passage + text for text in texts])

    def query(self, text: str) -> Vector:
        vector: Vector = self._encode(self._queries, [self.manifest.query + text])[0]
        return vector

    @property
    def has_pieces(self) -> bool:
        """Whether the network returns the vectors of word pieces as well."""
        return self.manifest.piece_dimensions > 0

    @property
    def piece_identity(self) -> EncoderIdentity:
        """The identity of the model, with the dimensions of the vectors of word pieces."""
        return replace(self.identity, dimensions=self.manifest.piece_dimensions)

    def passages_with_pieces(self, texts: Sequence[str]) -> tuple[Floats, list[bytes]]:
        """Return the vectors of passages, and the codes of their word pieces (`capr.runtime.late`)."""
        vectors = np.zeros((len(texts), self.manifest.dimensions), np.float32)
        codes = [b""] * len(texts)
        for position, vector, pieces in self._model.both([self.manifest.passage + text for text in texts]):
            vectors[position] = vector[: self.manifest.dimensions]
            codes[position] = late.pack(late.pool(pieces))
        return self._normalise(vectors), codes

    def query_with_pieces(self, text: str) -> tuple[Vector, Floats]:
        """Return the vector of a query, and the vectors of its word pieces: (pieces, piece_dimensions)."""
        mask = self._model.tokenizer.token_to_id("[MASK]") or self._model.tokenizer.token_to_id("<mask>") or 0
        vector, pieces = self._model.both_of_query(self.manifest.query + text, self.manifest.min_query_pieces, mask)
        return self._normalise(vector[None, : self.manifest.dimensions])[0], pieces

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        """Return the dot product of each passage with the query."""
        return [float(score) for score in self.passages(passages) @ self.query(query)]

    def _encode(self, model: PieceModel, texts: Sequence[str]) -> Floats:
        """Return the first `dimensions` values of each vector (nested vectors have more), of length 1 for cosines."""
        if not texts:
            return np.zeros((0, self.manifest.dimensions), np.float32)
        return self._normalise(model.run(texts)[:, : self.manifest.dimensions])

    def _normalise(self, vectors: Floats) -> Floats:
        """Return vectors of length 1 if they are compared by their cosines."""
        if self.manifest.similarity == "dot":
            return vectors.astype(np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        normalised: Floats = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
        return normalised

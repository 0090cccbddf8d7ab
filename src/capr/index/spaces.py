"""Query spaces: names of entities and aspects to vectors, in which a discourse model tells what a sentence is about.

Three kinds. `Names`: the vectors of the words of the name. `Codes`: a network that was trained on descriptions (CDV,
section 3), with an index of what it knows. `Encoded`: an encoder's vector of the name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from capr.annotate.aspects import keys
from capr.annotate.names import plain_key
from capr.documents import CaprError
from capr.index.encoder import Encoder
from capr.index.onnx import Floats, open_network
from capr.index.subwords import SKETCH, Subwords, words_of


class Space(Protocol):
    """Names to vectors."""

    dimensions: int

    def vectors(self, names: Sequence[str]) -> Floats:
        """(names, dimensions), of length 1; zeros for a name without words, or of which no word is known."""


def unit(vectors: Floats) -> Floats:
    """The vectors with length 1; those of zeros stay so."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    normalised: Floats = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return normalised


class Names:
    """The weighted mean of a name's word vectors, centred and projected; or less of it, and which words they are.

    Args:
        words: the vectors.
        centre: (dimensions of the words,), what all names have in common.
        projection: (dimensions of the words, dimensions), those that tell most first.
        sketched: how much of a product is that of the names' sketches, which take the place of two thirds of the
            dimensions (128 at most).
    """

    def __init__(self, words: Subwords, centre: Floats, projection: Floats, sketched: float = 0.0) -> None:
        if projection.shape[0] != words.dimensions or centre.shape != (words.dimensions,):
            fact = f"the words have {words.dimensions} dimensions, and the space wants {projection.shape[0]}"
            raise CaprError(f"{fact}. Fix: train the model again with these vectors.")
        self.dimensions = projection.shape[1]
        self.words, self.centre, self.sketched = words, centre, sketched
        self._said = min(SKETCH, 2 * self.dimensions // 3) if sketched else 0  # dimensions of the sketch
        self.projection = projection[:, : self.dimensions - self._said]

    def vectors(self, names: Sequence[str]) -> Floats:
        means = self.words.means(names, ("weighted",))  # (names, dimensions of the words)
        means[means.any(1)] -= self.centre
        meant = unit(means @ self.projection)
        if not self.sketched:
            return meant
        said = unit(self.words.means(names, ("sketch",))[:, : self._said])
        return unit(np.concatenate([math.sqrt(1 - self.sketched) * meant, math.sqrt(self.sketched) * said], 1))

    def linear(self, kinds: Sequence[str]) -> Floats:
        """(size of the kinds, dimensions): the way of means into this space, as far as it is linear."""
        blocks = {kind: np.zeros((self.words.size([kind]), self.dimensions), np.float32) for kind in kinds}
        if "weighted" in kinds:
            blocks["weighted"][:, : self.dimensions - self._said] = math.sqrt(1 - self.sketched) * self.projection
        if "sketch" in kinds and self.sketched:
            blocks["sketch"][:, -self._said :] = math.sqrt(self.sketched) * np.eye(SKETCH)[:, : self._said]
        return np.concatenate([blocks[kind] for kind in kinds])

    @classmethod
    def fitted(cls, words: Subwords, names: Sequence[str], dimensions: int) -> Names:
        """The space in which names differ most: their principal components."""
        means = words.means([name for name in names if words_of(name)], ("weighted",))
        if dimensions > min(means.shape):
            fact = f"{len(means)} names in {words.dimensions} dimensions span no space of {dimensions}"
            raise CaprError(f"{fact}. Fix: give more documents, or fewer dimensions.")
        centre = means.mean(0)
        _, axes = np.linalg.eigh((means - centre).T @ (means - centre))  # in ascending order
        return cls(words, centre, np.ascontiguousarray(axes[:, ::-1][:, :dimensions], np.float32))


class Codes:
    """A network's vectors of descriptions, averaged for each name that it knows; others are encoded on the fly.

    Args:
        words: the vectors that it reads.
        network: an ONNX file.
        known: by key, the vector.
        aspects: whether names are headings, which have several parts.
        threads: of ONNX Runtime; 0 for as many as there are cores.

    Raises:
        CaprError: the file is missing or damaged.

    Reference: CDV, equation 5.
    """

    def __init__(
        self, words: Subwords, network: Path, known: Mapping[str, Floats], aspects: bool, threads: int = 0
    ) -> None:
        self._session = open_network(network, threads)
        self.words, self.known, self.aspects = words, known, aspects
        self.dimensions = int(self._session.get_outputs()[0].shape[-1])

    def vectors(self, names: Sequence[str]) -> Floats:
        found = np.zeros((len(names), self.dimensions), np.float32)
        for row, name in enumerate(names):
            parts = [self._part(part) for part in (keys(name) if self.aspects else [plain_key(name)]) if part]
            if parts:
                found[row] = np.mean(parts, 0)
        return unit(found)

    def _part(self, key: str) -> Floats:
        if key in self.known:
            vector: Floats = self.known[key]
            return vector
        read = [self.words.vector(word) for word in words_of(key.replace("_", " "))]
        if not any(vector.any() for vector in read):
            return np.zeros(self.dimensions, np.float32)
        (encoded,) = self._session.run(None, {"words": np.stack(read)[None]})  # (1, words, dimensions of the words)
        return unit(encoded[0])


class Encoded:
    """An encoder's vectors of queries; nothing has to be trained."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.dimensions = encoder.identity.dimensions

    def vectors(self, names: Sequence[str]) -> Floats:
        found = np.zeros((len(names), self.dimensions), np.float32)
        for row, name in enumerate(names):
            if name.strip():
                found[row] = self.encoder.query(name)
        return unit(found)

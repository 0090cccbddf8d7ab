"""Query spaces: the vectors of names of entities and aspects. A discourse model maps sentences into the same space.

There are three kinds. `WordSpace` averages the vectors of the words of a name. `DescriptionSpace` has an index of known
names, and a network that was trained on descriptions (CDV, section 3). `EncoderSpace` encodes names with an encoder.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from capr.documents import CaprError
from capr.runtime.encoder import Encoder
from capr.runtime.onnx import Floats, open_network
from capr.runtime.subwords import SKETCH, Subwords, words_of
from capr.segment.aspects import keys
from capr.text.names import plain_key


class QuerySpace(Protocol):
    """A map from names to vectors."""

    dimensions: int

    def vectors(self, names: Sequence[str]) -> Floats:
        """Return vectors of length 1 (names, dimensions); zeros for a name without known words."""


def unit(vectors: Floats) -> Floats:
    """Scale vectors to length 1; a vector of zeros stays unchanged."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    normalised: Floats = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return normalised


class WordSpace:
    """The weighted mean of a name's word vectors, centred and projected, optionally with a sketch of the words.

    Args:
        words: the word vectors.
        centre: (dimensions of the words,), the mean over all names.
        projection: (dimensions of the words, dimensions), the axes with the largest variance first.
        sketched: the share of a dot product that comes from the names' sketches. If it is not 0, sketches replace the
            last two thirds of the dimensions (128 at most).
    """

    def __init__(self, words: Subwords, centre: Floats, projection: Floats, sketched: float = 0.0) -> None:
        if projection.shape[0] != words.dimensions or centre.shape != (words.dimensions,):
            fact = f"the words have {words.dimensions} dimensions, and the space wants {projection.shape[0]}"
            raise CaprError(f"{fact}. Fix: train the model again with these vectors.")
        self.dimensions = projection.shape[1]
        self.words, self.centre, self.sketched = words, centre, sketched
        self._sketch_size = min(SKETCH, 2 * self.dimensions // 3) if sketched else 0
        self.projection = projection[:, : self.dimensions - self._sketch_size]

    def vectors(self, names: Sequence[str]) -> Floats:
        means = self.words.means(names, ("weighted",))  # (names, dimensions of the words)
        means[means.any(1)] -= self.centre
        projected = unit(means @ self.projection)
        if not self.sketched:
            return projected
        sketches = unit(self.words.means(names, ("sketch",))[:, : self._sketch_size])
        return unit(np.concatenate([math.sqrt(1 - self.sketched) * projected, math.sqrt(self.sketched) * sketches], 1))

    def linear(self, kinds: Sequence[str]) -> Floats:
        """Return the linear part of the map from means into this space: (size of the kinds, dimensions)."""
        blocks = {kind: np.zeros((self.words.size([kind]), self.dimensions), np.float32) for kind in kinds}
        if "weighted" in kinds:
            blocks["weighted"][:, : self.dimensions - self._sketch_size] = (
                math.sqrt(1 - self.sketched) * self.projection
            )
        if "sketch" in kinds and self.sketched:
            blocks["sketch"][:, -self._sketch_size :] = (
                math.sqrt(self.sketched) * np.eye(SKETCH)[:, : self._sketch_size]
            )
        return np.concatenate([blocks[kind] for kind in kinds])

    @classmethod
    def fitted(cls, words: Subwords, names: Sequence[str], dimensions: int) -> WordSpace:
        """Fit a space to the principal components of names, in which the names differ most."""
        means = words.means([name for name in names if words_of(name)], ("weighted",))
        if dimensions > min(means.shape):
            fact = f"{len(means)} names in {words.dimensions} dimensions span no space of {dimensions}"
            raise CaprError(f"{fact}. Fix: give more documents, or fewer dimensions.")
        centre = means.mean(0)
        _, axes = np.linalg.eigh((means - centre).T @ (means - centre))  # in ascending order
        return cls(words, centre, np.ascontiguousarray(axes[:, ::-1][:, :dimensions], np.float32))


class DescriptionSpace:
    """A network's vectors of descriptions, averaged for each known name. The network encodes other names when needed.

    Args:
        words: the word vectors that the network reads.
        network: the ONNX file of the network.
        known: the vector of each key.
        aspects: whether names are headings, which can have several parts.
        threads: the number of threads of ONNX Runtime; 0 for one per core.

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
        vectors = np.zeros((len(names), self.dimensions), np.float32)
        for row, name in enumerate(names):
            parts = [self._encode(key) for key in (keys(name) if self.aspects else [plain_key(name)]) if key]
            if parts:
                vectors[row] = np.mean(parts, 0)
        return unit(vectors)

    def _encode(self, key: str) -> Floats:
        if key in self.known:
            vector: Floats = self.known[key]
            return vector
        words = [self.words.vector(word) for word in words_of(key.replace("_", " "))]
        if not any(vector.any() for vector in words):
            return np.zeros(self.dimensions, np.float32)
        (encoded,) = self._session.run(None, {"words": np.stack(words)[None]})  # (1, words, dimensions of the words)
        return unit(encoded[0])


class EncoderSpace:
    """An encoder's vectors of queries. This space needs no training."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.dimensions = encoder.identity.dimensions

    def vectors(self, names: Sequence[str]) -> Floats:
        vectors = np.zeros((len(names), self.dimensions), np.float32)
        for row, name in enumerate(names):
            if name.strip():
                vectors[row] = self.encoder.query(name)
        return unit(vectors)

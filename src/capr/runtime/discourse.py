"""Discourse vectors: a vector of each sentence of a document, in the context of the whole document; without torch.

Reference: Arnold et al., Learning Contextualized Document Representations for Healthcare Answer Retrieval (CDV), 2020.

The folder of a model has:

- `manifest.json`;
- `model.onnx`, which turns the sentences of a document into vectors;
- the input of that network: `words.npz` (word vectors) or `sentences/` (an encoder), or both;
- the query spaces: `names.npz`, or `entities.onnx` and `aspects.onnx` with their known names in `entities.npz` and
  `aspects.npz`, or `queries/` (an encoder; missing if queries use the encoder of `sentences/`).
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np

from capr.documents import CaprError, Document, Span
from capr.runtime import arrays
from capr.runtime import manifest as manifests
from capr.runtime.encoder import OnnxEncoder
from capr.runtime.identity import EncoderIdentity, Vector
from capr.runtime.manifest import Manifest
from capr.runtime.onnx import Floats, open_network
from capr.runtime.query_spaces import DescriptionSpace, EncoderSpace, QuerySpace, WordSpace
from capr.runtime.subwords import MEANS, Subwords
from capr.segment import sentences, structure
from capr.segment.aspects import heading

KIND = "cdv"
FLAGS = 7
ENCODER = "encoder"
FIX = "name a folder that capr train cdv has made"
REMEMBERED = 100_000  # the maximum number of cached vectors of names


class Discourse(Protocol):
    """A model with vectors of sentences and of queries; the dot product of two vectors is the score.

    A vector has two halves, one for the entity and one for the aspect; `identity.dimensions` is the size of both
    together. `threshold` selects the sentences of the answer: it is the share of `capr.runtime.sentence_runs.answer`.
    """

    identity: EncoderIdentity
    threshold: float

    def sentences(self, document: Document) -> tuple[list[Span], Floats]:
        """Return the sentences of a document, and their vectors (sentences, dimensions).

        Each half has length 1 before the whole vector is divided by sqrt(2).
        """

    def query(self, entity: str, aspect: str) -> Vector:
        """Return the vector of a query (dimensions,), scaled like those of sentences.

        The half of an empty or unknown name is zero, and the other half is not rescaled.
        """


@dataclass(frozen=True)
class DiscourseManifest(Manifest):
    """The manifest of a discourse model.

    Attributes:
        dimensions: the number of values of a vector, both halves together.
        sentences: the inputs for a sentence: `encoder`, means of word vectors (see `capr.runtime.subwords`), or both.
        space: the query space: `names`, `codes` or `encoder`.
        weights: the weights of the entity and of the aspect of a query; their sum is 2.
        window: the maximum number of sentences that are read together; 0 for whole documents.
        threshold: the share of `capr.runtime.sentence_runs.answer`, which selects the sentences of the answer.
        sketched: the share of the sketch in the vector of an entity; see `WordSpace` in `capr.runtime.query_spaces`.
    """

    dimensions: int
    sentences: tuple[str, ...]
    space: str
    weights: tuple[float, float] = (1.0, 1.0)
    window: int = 0
    threshold: float = 0.5
    sketched: float = 0.0


class OnnxDiscourse:
    """The discourse model of a folder.

    Args:
        folder: the folder of the model.
        threads: the number of threads of ONNX Runtime; 0 for one per core.

    Raises:
        CaprError: a file is missing or invalid.
    """

    def __init__(self, folder: str | os.PathLike[str], threads: int = 0) -> None:
        folder = Path(folder)
        self.manifest = self.read_manifest(folder)
        self._session = open_network(folder / "model.onnx", threads)
        self._encoder = OnnxEncoder(folder / "sentences", threads) if self._has_encoder else None
        self._words = Subwords.load(folder / "words.npz") if (folder / "words.npz").is_file() else None
        self._entities, self._aspects = self._spaces(folder, threads)
        inputs = self._session.get_inputs()[0].shape[-1]
        size = FLAGS + self._size()
        halves = self._entities.dimensions + self._aspects.dimensions
        if inputs != size or halves != self.manifest.dimensions:
            fact = f"the network reads {inputs} values and sentences have {size}; queries have {halves} dimensions"
            fact = f"{fact} and manifest.json says {self.manifest.dimensions}"
            raise CaprError(f"{folder} is inconsistent: {fact}. Fix: copy the folder again.")
        self.identity = EncoderIdentity(
            self.manifest.name, _digest(folder), self.manifest.dimensions, str(folder.resolve())
        )
        self.threshold = self.manifest.threshold
        self._half = lru_cache(REMEMBERED)(self._encode_name)

    @staticmethod
    def read_manifest(folder: Path, needed: Sequence[str] = ("model.onnx",)) -> DiscourseManifest:
        """Return the manifest of a discourse model's folder."""
        for name in (manifests.FILE, *needed):
            if not (folder / name).is_file():
                raise manifests.lacking(folder, "discourse model", name, FIX)
        path, record = folder / manifests.FILE, manifests.read_json(folder, FIX)
        if record.get("kind") != KIND:
            raise CaprError(f"{path} has kind {record.get('kind')!r}, which is not a discourse model. Fix: {FIX}.")
        try:
            entity, aspect = record.get("weights", (1.0, 1.0))
            weights = float(entity), float(aspect)
            kinds = tuple(record["sentences"])
        except (ValueError, TypeError, KeyError) as error:
            raise CaprError(f"{path} is invalid ({error}). Fix: {FIX}.") from error
        manifest = manifests.parse(DiscourseManifest, record | {"sentences": kinds, "weights": weights}, path, FIX)
        valid = manifest.space in ("names", "codes", ENCODER) and set(kinds[1:]) <= set(MEANS)
        valid = valid and set(kinds[:1]) <= {ENCODER, *MEANS} and 0 <= manifest.sketched <= 1
        if not valid or not kinds or not all(map(math.isfinite, weights)):
            fact = f"sentences {list(kinds)}, space {manifest.space!r}, sketched {manifest.sketched}"
            raise CaprError(f"{path} has {fact}, weights {list(weights)}, which is not a discourse model. Fix: {FIX}.")
        return manifest

    @property
    def _has_encoder(self) -> bool:
        return ENCODER in self.manifest.sentences

    @property
    def _kinds(self) -> tuple[str, ...]:
        """The kinds of means in the input."""
        return tuple(kind for kind in self.manifest.sentences if kind != ENCODER)

    def sentences(self, document: Document) -> tuple[list[Span], Floats]:
        spans = sentences(document.text)
        return spans, self.vectors([document[span] for span in spans], structure(document.text, spans))

    def vectors(self, texts: Sequence[str], flags: Sequence[Sequence[int]]) -> Floats:
        """Return vectors (sentences, dimensions) of the sentences of a document, with their structure flags known."""
        if not texts:
            return np.zeros((0, self.manifest.dimensions), np.float32)
        inputs = np.concatenate([self._read(texts), np.array(flags, np.float32)], 1)  # (sentences, size + 7)
        size = self.manifest.window or len(inputs)
        parts = [self._run(inputs[:size])]
        for begin in range(size, len(inputs), size):  # each window starts with the first sentence: it names the subject
            parts.append(self._run(np.concatenate([inputs[:1], inputs[begin : begin + size]]))[1:])
        return np.concatenate(parts).astype(np.float32, copy=False)

    def _run(self, inputs: Floats) -> Floats:
        vectors: Floats = self._session.run(None, {"sentences": inputs})[0]
        return vectors

    def query(self, entity: str, aspect: str) -> Vector:
        halves = [self._half("entity", " ".join(entity.split())), self._half("aspect", " ".join(aspect.split()))]
        weighted = [half * weight for half, weight in zip(halves, self.manifest.weights, strict=True)]
        return (np.concatenate(weighted) / math.sqrt(2)).astype(np.float32)

    def _encode_name(self, kind: str, name: str) -> Vector:
        """Return the vector (half,) of an entity's name, or of the usual heading of an aspect."""
        vector: Vector
        if kind == "entity":
            (vector,) = self._entities.vectors([name])
        else:
            (vector,) = self._aspects.vectors([heading(name) if name else ""])
        return vector

    def _read(self, texts: Sequence[str]) -> Floats:
        """Return the inputs of the network for sentences, without the flags: (sentences, size)."""
        parts = [] if self._encoder is None else [self._encoder.passages(texts)]
        if self._kinds:
            assert self._words is not None
            parts.append(self._words.means(texts, self._kinds))
        return np.concatenate(parts, 1)

    def _size(self) -> int:
        size = 0 if self._encoder is None else self._encoder.identity.dimensions
        if not self._kinds:
            return size
        if self._words is None:
            raise CaprError(f"the model has no words.npz. Fix: {FIX}.")
        return size + self._words.size(self._kinds)

    def _spaces(self, folder: Path, threads: int) -> tuple[QuerySpace, QuerySpace]:
        space = self.manifest.space
        if space == ENCODER:
            encoder = OnnxEncoder(folder / "queries", threads) if (folder / "queries").is_dir() else self._encoder
            if encoder is None:
                raise CaprError(f"{folder} has no queries/, an encoder for its queries. Fix: {FIX}.")
            return EncoderSpace(encoder), EncoderSpace(encoder)
        if self._words is None:
            raise CaprError(f"{folder} has no words.npz, which its queries need. Fix: {FIX}.")
        if space == "names":
            centre, projection = arrays.load(folder / "names.npz", "query space", "centre", "projection")
            return word_spaces(self._words, centre, projection, self.manifest.sketched)
        return description_space(folder, self._words, "entities", threads), description_space(
            folder, self._words, "aspects", threads
        )


def word_spaces(words: Subwords, centre: Floats, projection: Floats, sketched: float) -> tuple[WordSpace, WordSpace]:
    """Return the spaces of entities and of aspects. Only entities have a sketch: their exact words matter more."""
    return WordSpace(words, centre, projection, sketched), WordSpace(words, centre, projection)


def description_space(folder: Path, words: Subwords, kind: str, threads: int = 0) -> DescriptionSpace:
    """Load the space of `entities` or `aspects` from a folder.

    Raises:
        CaprError: a file is missing, damaged or something else.
    """
    path = folder / f"{kind}.npz"
    joined_names, vectors = arrays.load(path, "query space", "names", "vectors")
    names = joined_names.tobytes().decode(errors="replace").split("\n")
    space = DescriptionSpace(
        words, folder / f"{kind}.onnx", dict(zip(names, vectors, strict=False)), kind == "aspects", threads
    )
    if vectors.shape != (len(names), space.dimensions):
        fact = f"{len(names)} names, vectors of shape {vectors.shape}, a network that gives {space.dimensions} values"
        raise CaprError(f"{path} is inconsistent: {fact}. Fix: copy the folder again.")
    return space


def _digest(folder: Path) -> str:
    """Return the digest of a model's files, which is the same wherever the folder lies."""
    total = hashlib.sha256()
    suffixes = (".onnx", ".npz", "manifest.json", "tokenizer.json")
    for path in sorted(path for path in folder.rglob("*") if path.name.endswith(suffixes)):
        total.update(path.relative_to(folder).as_posix().encode())
        with path.open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()[:32]

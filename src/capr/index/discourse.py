"""Discourse vectors: every sentence of a document as a vector that knows the whole document, without torch.

Reference: Arnold et al., Learning Contextualized Document Representations for Healthcare Answer Retrieval (CDV), 2020.

A folder holds `manifest.json`, `model.onnx` (sentences of a document to vectors), `words.npz` or `sentences/` (an
encoder) to read sentences with, and its query spaces: `names.npz`, or `entities.onnx` and `aspects.onnx` with what
they know in `entities.npz` and `aspects.npz`, or `queries/` (an encoder; none if it is that of `sentences/`).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np

from capr.annotate.query import heading
from capr.documents import CaprError, Document, Span
from capr.index import arrays
from capr.index.encoder import OnnxEncoder
from capr.index.onnx import Floats, open_network
from capr.index.protocol import EncoderIdentity, Vector
from capr.index.spaces import Codes, Encoded, Names, Space
from capr.index.subwords import MEANS, Subwords
from capr.segment import sentences, structure

KIND = "cdv"
FLAGS = 7
ENCODER = "encoder"
FIX = "name a folder that capr train cdv has made"
REMEMBERED = 100_000  # vectors of names


class Discourse(Protocol):
    """Documents to a vector for each sentence, queries to a vector; their dot product is the score.

    A vector has two halves, of the entity and of the aspect; `identity.dimensions` is the size of both together.
    `threshold` says which sentences are a part of the answer: the share of `capr.search.runs.answer`.
    """

    identity: EncoderIdentity
    threshold: float

    def sentences(self, document: Document) -> tuple[list[Span], Floats]:
        """The sentences of a document and (sentences, dimensions).

        Each half has length 1, and the whole is divided by sqrt(2).
        """

    def query(self, entity: str, aspect: str) -> Vector:
        """(dimensions,), the halves likewise; that of an empty or unknown name is zero, and the other not rescaled."""


@dataclass(frozen=True)
class DiscourseManifest:
    """What a program must know of a discourse model.

    Attributes:
        name: by which people know it.
        kind: `cdv`.
        dimensions: of a vector, both halves together.
        sentences: how sentences are read: `encoder`, means of word vectors (see `capr.index.subwords`), or both.
        space: of queries: `names`, `codes` or `encoder`.
        weights: how much the entity and the aspect of a query count; 2 together.
        window: sentences that are read together, at most; 0 for whole documents.
        threshold: which sentences are a part of the answer: the share of `capr.search.runs.answer`.
        sketched: how much of an entity, in the space of names, is which words it has; see `capr.index.spaces`.
    """

    name: str
    kind: str
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
        folder: that has it.
        threads: of ONNX Runtime; 0 for as many as there are cores.

    Raises:
        CaprError: a file is missing or is not what it should be.
    """

    def __init__(self, folder: str | os.PathLike[str], threads: int = 0) -> None:
        folder = Path(folder)
        self.manifest = read_discourse_manifest(folder)
        self._session = open_network(folder / "model.onnx", threads)
        self._encoder = OnnxEncoder(folder / "sentences", threads) if self._reads_pieces else None
        self._words = Subwords.load(folder / "words.npz") if (folder / "words.npz").is_file() else None
        self._entities, self._aspects = self._spaces(folder, threads)
        wanted = self._session.get_inputs()[0].shape[-1]
        given = FLAGS + self._size()
        halves = self._entities.dimensions + self._aspects.dimensions
        if wanted != given or halves != self.manifest.dimensions:
            fact = f"the network reads {wanted} values and sentences have {given}; queries have {halves} dimensions"
            fact = f"{fact} and manifest.json says {self.manifest.dimensions}"
            raise CaprError(f"{folder} does not fit together: {fact}. Fix: copy the folder again.")
        self.identity = EncoderIdentity(
            self.manifest.name, _digest(folder), self.manifest.dimensions, str(folder.resolve())
        )
        self.threshold = self.manifest.threshold
        self._half = lru_cache(REMEMBERED)(self._named)

    @property
    def _reads_pieces(self) -> bool:
        return ENCODER in self.manifest.sentences

    @property
    def _kinds(self) -> tuple[str, ...]:
        """Of means that are read."""
        return tuple(kind for kind in self.manifest.sentences if kind != ENCODER)

    def sentences(self, document: Document) -> tuple[list[Span], Floats]:
        spans = sentences(document.text)
        return spans, self.vectors([document[span] for span in spans], structure(document.text, spans))

    def vectors(self, texts: Sequence[str], flags: Sequence[Sequence[int]]) -> Floats:
        """(sentences, dimensions), of a document whose sentences and structure flags are known."""
        if not texts:
            return np.zeros((0, self.manifest.dimensions), np.float32)
        read = np.concatenate([self._read(texts), np.array(flags, np.float32)], 1)  # (sentences, size + 7)
        size = self.manifest.window or len(read)
        parts = [self._run(read[:size])]
        for begin in range(size, len(read), size):  # each window after the first sentence, which names the subject
            parts.append(self._run(np.concatenate([read[:1], read[begin : begin + size]]))[1:])
        return np.concatenate(parts).astype(np.float32, copy=False)

    def _run(self, read: Floats) -> Floats:
        found: Floats = self._session.run(None, {"sentences": read})[0]
        return found

    def query(self, entity: str, aspect: str) -> Vector:
        halves = [self._half("entity", " ".join(entity.split())), self._half("aspect", " ".join(aspect.split()))]
        weighted = [half * weight for half, weight in zip(halves, self.manifest.weights, strict=True)]
        return (np.concatenate(weighted) / math.sqrt(2)).astype(np.float32)

    def _named(self, kind: str, name: str) -> Vector:
        """(half,): of an entity by its name, of an aspect by its usual heading."""
        vector: Vector
        if kind == "entity":
            (vector,) = self._entities.vectors([name])
        else:
            (vector,) = self._aspects.vectors([heading(name) if name else ""])
        return vector

    def _read(self, texts: Sequence[str]) -> Floats:
        """(sentences, size): what the network reads of each, besides its flags."""
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

    def _spaces(self, folder: Path, threads: int) -> tuple[Space, Space]:
        space = self.manifest.space
        if space == ENCODER:
            own = OnnxEncoder(folder / "queries", threads) if (folder / "queries").is_dir() else self._encoder
            if own is None:
                raise CaprError(f"{folder} has no queries/, an encoder for its queries. Fix: {FIX}.")
            return Encoded(own), Encoded(own)
        if self._words is None:
            raise CaprError(f"{folder} has no words.npz, which its queries need. Fix: {FIX}.")
        if space == "names":
            centre, projection = arrays.load(folder / "names.npz", "query space", "centre", "projection")
            return names(self._words, centre, projection, self.manifest.sketched)
        return codes(folder, self._words, "entities", threads), codes(folder, self._words, "aspects", threads)


def names(words: Subwords, centre: Floats, projection: Floats, sketched: float) -> tuple[Names, Names]:
    """The spaces of entities and of aspects; which words a name has tells more of an entity than of an aspect."""
    return Names(words, centre, projection, sketched), Names(words, centre, projection)


def codes(folder: Path, words: Subwords, kind: str, threads: int = 0) -> Codes:
    """The space of codes of `entities` or `aspects` that a folder has.

    Raises:
        CaprError: a file is missing, damaged or something else.
    """
    path = folder / f"{kind}.npz"
    listed, vectors = arrays.load(path, "query space", "names", "vectors")
    names = listed.tobytes().decode(errors="replace").split("\n")
    space = Codes(words, folder / f"{kind}.onnx", dict(zip(names, vectors, strict=False)), kind == "aspects", threads)
    if vectors.shape != (len(names), space.dimensions):
        fact = f"{len(names)} names, vectors of shape {vectors.shape}, a network that gives {space.dimensions} values"
        raise CaprError(f"{path} does not fit together: {fact}. Fix: copy the folder again.")
    return space


def load_discourse(folder: str | os.PathLike[str], threads: int = 0) -> OnnxDiscourse:
    """The discourse model of a folder."""
    return OnnxDiscourse(folder, threads)


def is_discourse(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a discourse model; False also if its manifest cannot be read."""
    try:
        manifest = json.loads((Path(folder) / "manifest.json").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("kind") == KIND


def read_discourse_manifest(folder: Path) -> DiscourseManifest:
    """The manifest of a folder that holds a discourse model."""
    for name in ("manifest.json", "model.onnx"):
        if not (folder / name).is_file():
            raise CaprError(f"{folder} is no discourse model: it has no {name}. Fix: {FIX}.")
    path = folder / "manifest.json"
    try:
        given = json.loads(path.read_text("utf-8"))
        kinds, (entity, aspect) = tuple(given["sentences"]), given.get("weights", (1.0, 1.0))
        manifest = DiscourseManifest(**{**given, "sentences": kinds, "weights": (float(entity), float(aspect))})
    except (ValueError, TypeError, KeyError) as error:
        raise CaprError(f"{path} cannot be understood ({error}). Fix: {FIX}.") from error
    whole = all(type(number) is int and number >= 0 for number in (manifest.dimensions, manifest.window))
    numbers = (*manifest.weights, manifest.threshold, manifest.sketched)
    if not whole or not all(type(number) in (int, float) and math.isfinite(number) for number in numbers):
        fact = f"dimensions {manifest.dimensions!r}, window {manifest.window!r}, threshold {manifest.threshold!r}"
        wanted = f"whole numbers and a share are wanted. Fix: {FIX}"
        raise CaprError(f"{path} has {fact}, weights {list(manifest.weights)}: {wanted}.")
    known = manifest.space in ("names", "codes", ENCODER) and set(kinds[1:]) <= set(MEANS)
    known = known and set(kinds[:1]) <= {ENCODER, *MEANS} and 0 <= manifest.sketched <= 1
    if manifest.kind != KIND or not known or not kinds:
        fact = (
            f"kind {manifest.kind!r}, sentences {list(kinds)}, space {manifest.space!r}, sketched {manifest.sketched}"
        )
        raise CaprError(f"{path} has {fact}, which is no discourse model. Fix: {FIX}.")
    return manifest


def _digest(folder: Path) -> str:
    """By which a model is known, wherever it lies."""
    total = hashlib.sha256()
    kept = (".onnx", ".npz", "manifest.json", "tokenizer.json")
    for path in sorted(path for path in folder.rglob("*") if path.name.endswith(kept)):
        total.update(path.relative_to(folder).as_posix().encode())
        with path.open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()[:32]

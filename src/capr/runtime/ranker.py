"""Rankers: models that read a query and a passage together, and score the candidates."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from capr import registry
from capr.documents import CaprError
from capr.runtime.inputs import Candidate, Inputs
from capr.runtime.manifest import FILE, Manifest
from capr.runtime.onnx import Network, batches, read_manifest

SENTENCES = "sentences"  # the output with the scores of sentences, if the network has it


class Ranker(Protocol):
    """A model that scores passages for a query; better passages have higher scores."""

    def scores(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        """Return a score for each passage."""


@dataclass(frozen=True, slots=True)
class RankerScores:
    """The scores of a ranker.

    Attributes:
        passages: a score for each passage.
        sentences: for each passage, a score for each of its sentences; None if the ranker scores passages only.
    """

    passages: Sequence[float]
    sentences: Sequence[Sequence[float]] | None = None


@runtime_checkable
class SentenceRanker(Protocol):
    """A ranker that scores passages and their sentences."""

    def read(self, query: str, passages: Sequence[Candidate]) -> RankerScores:
        """Return the scores of passages and, if the ranker scores them, exactly one score for each sentence."""


@runtime_checkable
class Keeper(Protocol):
    """A ranker that can read passages in advance, so that a query need not wait for the reading."""

    def keep(self, passages: Sequence[str]) -> Sequence[Any]:
        """Return for each passage the values that `scores_kept` needs."""

    def scores_kept(self, query: str, passages: Sequence[Any]) -> Sequence[float]:
        """Return a score for each passage, from the values that `keep` returned."""


def rank(ranker: Ranker, query: str, passages: Sequence[Candidate]) -> RankerScores:
    """Score passages, and their sentences if the ranker scores sentences."""
    if isinstance(ranker, SentenceRanker):
        return ranker.read(query, passages)
    return RankerScores(list(ranker.scores(query, [passage.text for passage in passages])))


@dataclass(frozen=True)
class RankerManifest(Manifest):
    """The manifest of a ranker.

    Attributes:
        pieces: the maximum number of word pieces of a query with a passage, if `inputs` is `pieces`.
        inputs: the name of its inputs: `pieces` or `words`; see `capr.runtime.inputs`.
        query_words, passage_words: the maximum numbers of words, if `inputs` is `words`.
    """

    kind: str = "ranker"
    pieces: int = 256
    inputs: str = "pieces"
    query_words: int = 32
    passage_words: int = 256


# The name in the manifest -> the class that makes the inputs, `module:Class`. Its `file` names the file that it needs
# in a model's folder; its `of` makes the inputs of a model.
INPUTS = {
    "pieces": "capr.runtime.inputs:PieceInputs",
    "words": "capr.runtime.inputs:WordInputs",
}


def inputs_named(name: str) -> Any:
    """Return the class of the inputs with this name."""
    return registry.load(INPUTS[name])


class OnnxRanker:
    """The ranker of a folder: a network with one score for a query and a passage, whatever its inputs.

    Args:
        folder: a folder with `model.onnx`, `manifest.json`, and `tokenizer.json` or `words.tsv` for the inputs.
        threads: the number of threads of ONNX Runtime; 0 for one per core.
        file: the file of the network.
        pieces: the maximum number of word pieces; 0 for the number in the manifest.

    Raises:
        CaprError: the folder holds no ranker.
    """

    def __init__(
        self, folder: str | os.PathLike[str], threads: int = 0, file: str = "model.onnx", pieces: int = 0
    ) -> None:
        folder = Path(folder)
        self.manifest = self.read_manifest(folder)
        self._inputs: Inputs = inputs_named(self.manifest.inputs).of(folder, self.manifest, pieces)
        self._network = Network(folder / file, threads, self._inputs.names)
        self._sentences = self._network.outputs.index(SENTENCES) if SENTENCES in self._network.outputs else None
        outputs = self._run(self._inputs.pairs("a", [Candidate("b")]))[0].shape[1]
        if outputs != 1:
            fact = f"its model gives {outputs} numbers for a pair of texts"
            raise CaprError(f"{folder} is not a ranker: {fact}. Fix: export a network with one output.")

    @staticmethod
    def read_manifest(folder: Path, needed: Sequence[str] = ("model.onnx", FILE)) -> RankerManifest:
        """Return the manifest of a ranker's folder."""
        manifest = read_manifest(folder, RankerManifest, "ranker", needed)
        if manifest.inputs not in INPUTS:
            fix = f"use {' or '.join(INPUTS)}"
            raise CaprError(f"{folder / FILE} has inputs {manifest.inputs!r}. Fix: {fix}.")
        read_manifest(folder, RankerManifest, "ranker", (inputs_named(manifest.inputs).file,))
        return manifest

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        return list(self.read(query, [Candidate(text) for text in passages]).passages)

    def read(self, query: str, passages: Sequence[Candidate]) -> RankerScores:
        """Return the scores of passages and, if the network scores them, of their sentences."""
        if self._sentences is None:  # candidates without sentences are tokenized faster
            passages = [Candidate(passage.text) for passage in passages]
        pairs = self._inputs.pairs(query, passages)
        scores = np.zeros(len(pairs))
        sentences: list[list[float]] = [[] for _ in pairs]
        for batch in batches([pair.length for pair in pairs], self._inputs.together):
            passage_scores, sentence_scores = self._run([pairs[i] for i in batch])
            scores[batch] = passage_scores[:, 0]
            for row, i in enumerate(batch if sentence_scores is not None else ()):
                sentences[i] = _fill(sentence_scores[row], len(passages[i].sentences))
        return RankerScores(scores.tolist(), None if self._sentences is None else sentences)

    def _run(self, pairs: Sequence[Any]) -> tuple[Any, Any]:
        """Return the scores of pairs (pairs, outputs), and of sentences (pairs, sentences) or None."""
        outputs = self._network.run(self._inputs.arrays(pairs))
        scores = outputs[0]
        if scores.ndim == 3:  # scores of all pieces; the first piece represents the pair
            scores = scores[:, 0]
        sentence_scores = None if self._sentences is None else outputs[self._sentences]
        return scores.reshape(len(pairs), -1), sentence_scores


def _fill(scores: Any, count: int) -> list[float]:
    """Return `count` scores; sentences after the end of the input get the lowest score of those before it."""
    scored: list[float] = scores[:count].tolist()
    return scored + [min(scored, default=0.0)] * (count - len(scored))

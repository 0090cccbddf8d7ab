"""Rankers over word vectors: the base class of families whose networks read the ids of words.

Such a family is a network with its settings. The network takes some arrays of `capr.runtime.inputs.WordInputs` by name
(`query_ids`, `passage_ids`, `query_idf`, `passage_idf`). It returns `scores` (pairs,), and may return scores of the
passage's sentences after them. It learns like all pairwise rankers: see `capr.models.pairwise`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from capr.documents import CaprError
from capr.models.export import Exported, export
from capr.models.family import Family, Offered, option
from capr.models.memory import Inputs
from capr.models.pairwise import PairObjective, Texts
from capr.models.ranking import Ranking
from capr.runtime.inputs import UNKNOWN, Candidate, WordInputs
from capr.runtime.subwords import Subwords, read_glove
from capr.supervise.pairs import TrainingPairs

SPREAD = 0.1  # standard deviation of random initial vectors


@dataclass(frozen=True, kw_only=True)
class WordRanking(Ranking):
    """The settings that all rankers over word vectors share.

    Attributes:
        vectors: a file of initial word vectors. Default: random vectors.
        size: dimensions of random initial vectors.
        words: maximum number of words of a passage.
        query_words: maximum number of words of a query.
        least: minimum count of a word that gets its own vector.
    """

    kind: ClassVar[str] = "ranker of word vectors"
    offered: ClassVar[Offered] = {
        name: changes for name, changes in Family.offered.items() if name != "max_pieces_per_pass"
    }

    vectors: str = option("", "Initial word vectors: GloVe's text, or words.npz. Default: random.", metavar="FILE")
    size: int = option(100, "Dimensions of random initial vectors.", name="--word-dimensions", least=1)
    words: int = option(256, "Maximum number of words of a passage.", least=1)
    query_words: int = 32
    least: int = 1

    @abstractmethod
    def network(self, vectors: Tensor) -> nn.Module:
        """Return the network for initial vectors (words, size). The first vector is for padding, and is zero."""

    def objective(self, pairs: TrainingPairs, device: str, limit: int = 0) -> WordObjective:
        pretrained = load_vectors(Path(self.vectors)) if self.vectors else None
        # The vocabulary includes the words of headings and titles, because queries have them.
        texts = (text.view("title") for text in pairs.passages)
        inputs = WordInputs.fitted(texts, self.query_words, self.words, self.least)
        size = self.size if pretrained is None else pretrained.dimensions
        vectors = np.random.default_rng(0).normal(0, SPREAD, (len(inputs), size)).astype(np.float32)
        vectors[0] = 0
        if pretrained is not None:
            vectors[UNKNOWN] = 0
            vectors[UNKNOWN + 1 :] = [pretrained.vector(word) for word in inputs.vocabulary]
        return WordObjective(self, self.network(torch.from_numpy(vectors)), pairs, inputs, device)

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"vectors": Path(self.vectors).name}


class WordObjective(PairObjective):
    """The objective of a network over words: listwise softmax."""

    def __init__(
        self, family: WordRanking, model: nn.Module, pairs: TrainingPairs, inputs: WordInputs, device: str
    ) -> None:
        super().__init__(family, model, pairs, device)  # without limit: a small network reads a whole batch at once
        self.inputs = inputs
        parameters = signature(model.forward).parameters
        self.names = tuple(name for name in inputs.names if name in parameters)

    def read(self, texts: Texts) -> Inputs:
        pairs = [pair for query, text in texts for pair in self.inputs.pairs(query, [Candidate(text)])]
        arrays = self.inputs.arrays(pairs)
        return {name: torch.from_numpy(arrays[name]).to(self.device) for name in self.names}

    @property
    def data(self) -> dict[str, int]:
        return {"words": len(self.inputs)}

    def save_weights(self, folder: Path) -> None:
        torch.save(self.model.state_dict(), folder / "network.pt")
        self.inputs.save(folder)

    def manifest(self) -> Mapping[str, Any]:
        words = {"query_words": self.inputs.query_words, "passage_words": self.inputs.passage_words}
        return {"kind": "ranker", "inputs": "words", **words}

    def export(self, folder: Path) -> None:
        example = self.read([("a b", "a b c"), ("c", "b")])
        axes = {name: {0: "pairs", 1: name.replace("_", " ")} for name in self.names}
        with torch.no_grad():
            scores_sentences = not isinstance(self.model(**example), Tensor)
        outputs = {"scores": {0: "pairs"}} | ({"sentences": {0: "pairs", 1: "sentences"}} if scores_sentences else {})
        network = WordNetworkForExport(self.model, self.names)
        export(network, tuple(example[name] for name in self.names), axes, folder, outputs=outputs)
        self.inputs.save(folder)

    def load_export(self, folder: Path, suffix: str) -> nn.Module:
        return Exported(folder / f"model{suffix}", self.names)


class WordNetworkForExport(nn.Module):
    """A network for export: it takes its inputs by position instead of by name."""

    def __init__(self, model: nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: Tensor) -> Any:
        return self.model(**dict(zip(self.names, inputs, strict=True)))


def load_vectors(path: Path) -> Subwords:
    """Load the word vectors of a file: GloVe's text, or the words.npz of a model.

    Raises:
        CaprError: the file is missing, or holds something else.
    """
    if not path.is_file():
        fact = f"{path} is a folder, not a file of word vectors" if path.is_dir() else f"there is no {path}"
        raise CaprError(f"{fact}. Fix: name GloVe's text, or the words.npz of a model.")
    return Subwords.load(path) if path.suffix == ".npz" else read_glove(path)

"""Rankers that encode queries and passages separately and learn by in-batch softmax.

The bi-encoder and the poly-encoder share the base, the markers, the batch and the loss (CAPR, equation 1). The
negatives of a query are the passages and the hard negatives of all other queries of the batch, and its own hard
negatives.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from capr.documents import CaprError
from capr.models.bases import BUILT_IN, MARKERS, PieceTokenizer, add_markers, load_encoder, load_tokenizer, weights_of
from capr.models.export import Exported, piece_example
from capr.models.family import option
from capr.models.layers import cut
from capr.models.long_context import LongEncoder
from capr.models.losses import listwise
from capr.models.memory import read_parts, read_whole
from capr.models.ranking import Ranking, RankingObjective
from capr.supervise.pairs import Draw, TrainingPairs


@dataclass(frozen=True, kw_only=True)
class TwoSidedFamily(Ranking):
    """The settings that the bi-encoder and the poly-encoder share.

    Attributes:
        base: a Hugging Face encoder, by path or name; the folder of a trained model, to continue its training; or
            `encoder`, the built-in encoder.
        pieces: maximum number of word pieces of a passage.
        query_pieces: maximum number of word pieces of a query.
        layers: number of layers to keep; 0 for all.
        shared: whether one encoder serves queries and passages.
        markers: whether `[QUERY]` and `[PASSAGE]` precede the texts.
        long_context: whether the network reads passages with the text around them. This needs a Longformer.
    """

    base: str = option(
        help="A folder or name of the Hub, or encoder, ranker or reader.",
        metavar="MODEL",
    )
    pieces: int = option(256, "Maximum number of word pieces of a passage.", least=8)
    layers: int = option(0, "Layers of the base to keep; 0 for all.", least=0)
    shared: bool = option(True, "One encoder for queries and passages, or two.", name="--shared/--separate")
    markers: bool = option(False, "Mark texts with [QUERY] and [PASSAGE].", name="--markers/--no-markers")
    long_context: bool = option(
        False, "Read a passage with the text around it (Longformer).", name="--long-context/--no-long-context"
    )
    query_pieces: int = 64

    @property
    def with_context(self) -> bool:
        return self.long_context

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"base": Path(self.base).name}

    def check(self) -> None:
        self.objective(TrainingPairs([], []), "cpu")

    def encoder(self, device: str, around: bool) -> tuple[Any, PieceTokenizer]:
        """Return the initial encoder and its tokenizer.

        Args:
            device: `cuda` or `cpu`.
            around: whether, in a Longformer, the text around a passage attends globally.

        Raises:
            CaprError: the base cannot be used.
        """
        base = weights_of(self.base, *BUILT_IN)
        tokenizer = load_tokenizer(base)
        encoder = load_encoder(base)
        if self.layers:
            encoder = cut(encoder, self.layers)
        if self.markers:
            add_markers(encoder, tokenizer)
        piece_tokenizer = PieceTokenizer(tokenizer, encoder, device)
        if self.long_context:
            if getattr(encoder.config, "model_type", "") != "longformer":
                fix = "take a Longformer for --base, or leave out --long-context"
                raise CaprError(f"{self.base} cannot read a passage in its context. Fix: {fix}.")
            encoder = LongEncoder(encoder, around)
        return encoder, piece_tokenizer

    def load_query_encoder(self, model: Any) -> None:
        """Load the separate query encoder of the base, if the base has one."""
        own = Path(weights_of(self.base, *BUILT_IN)) / "query"
        if not self.shared and own.is_dir():
            inner(model.query_encoder).load_state_dict(load_encoder(str(own)).state_dict(), strict=False)


@dataclass
class TwoSidedBatch:
    """The tensors of a training step, on the device.

    Attributes:
        queries: the inputs of the queries.
        passages: the inputs of the passages in parts. The passages of a part have similar lengths.
        inverse: (passages,), the row in the parts of each passage.
        answers: (queries,), the position of the answering passage.
        left_out: (queries, passages), true for passages that may also answer.
        teacher_positions: (queries, list), the positions of the passages that the teacher scores.
        teacher_inputs: the inputs of the teacher, each query with these passages, in parts like `passages`; and the
            row in the parts of each pair.
    """

    queries: dict[str, Tensor]
    passages: list[dict[str, Tensor]]
    inverse: Tensor
    answers: Tensor
    left_out: Tensor
    teacher_positions: Tensor | None = None
    teacher_inputs: tuple[list[dict[str, Tensor]], Tensor] | None = None


class BatchTexts(NamedTuple):
    """The queries and passages of a batch, before they are tokenized.

    Attributes:
        queries: the texts of the queries.
        numbers: the numbers of the passages.
        answers: (queries,), the position of the answering passage.
        left_out: (queries, passages), true for passages that may also answer.
    """

    queries: list[str]
    numbers: list[int]
    answers: Tensor
    left_out: Tensor


class TwoSidedObjective(RankingObjective):
    """In-batch softmax: each query against all passages and hard negatives of the batch.

    Args:
        family: the settings.
        model: a network with the methods `query`, `passage` and `scores`.
        pairs: the training data.
        tokenizer: tokenizes the texts.
        limit: number of word pieces that the network reads at once; 0 for a whole batch.
    """

    family: TwoSidedFamily
    model: Any
    equal_length = False  # whether all passages of a batch must have the same length

    def __init__(
        self, family: TwoSidedFamily, model: nn.Module, pairs: TrainingPairs, tokenizer: PieceTokenizer, limit: int = 0
    ) -> None:
        super().__init__(pairs, tokenizer.device, limit)
        self.family, self.model, self.tokenizer = family, model, tokenizer
        self.marks = MARKERS if family.markers else ("", "")

    def to(self, device: str) -> None:
        super().to(device)
        self.tokenizer.device = device

    def batch(self, draws: Sequence[Draw], rng: random.Random) -> TwoSidedBatch:
        collected = self.collect(draws, rng)
        view = self.family.view(rng)
        batch = TwoSidedBatch(
            self.read_query(collected.queries),
            *self._parts(collected.numbers, view),
            collected.answers.to(self.device),
            collected.left_out.to(self.device),
        )
        self.add_teacher_inputs(batch, draws, collected, view, rng)
        return batch

    def add_teacher_inputs(
        self, batch: TwoSidedBatch, draws: Sequence[Draw], collected: BatchTexts, view: str, rng: random.Random
    ) -> None:
        """Add the inputs of the teacher to a batch."""

    def collect(self, draws: Sequence[Draw], rng: random.Random) -> BatchTexts:
        """Return the queries of a batch, their passages and hard negatives, and which of them answer."""
        queries = [draw.draw_wording(rng) for draw in draws]
        positions: dict[int, int] = {}  # number of a passage to its position in the batch
        for draw in draws:
            positions.setdefault(draw.passage, len(positions))
        for draw in draws:
            for number in rng.sample(draw.negatives, min(self.family.negatives, len(draw.negatives))):
                positions.setdefault(number, len(positions))
        answers = torch.tensor([positions[draw.passage] for draw in draws])
        left_out = torch.zeros(len(draws), len(positions), dtype=torch.bool)
        if self.family.false_negatives:
            for row, draw in enumerate(draws):
                answering = self.pairs.answering(draw)
                left_out[row, [positions[number] for number in answering if number in positions]] = True
            left_out[torch.arange(len(draws)), answers] = False
        return BatchTexts(queries, list(positions), answers, left_out)

    def loss(self, batch: TwoSidedBatch) -> Tensor:
        queries = read_whole(self.model.query, batch.queries, self.limit)
        scores = self.model.scores(queries, self.encode(batch))
        return listwise(scores, batch.answers, batch.left_out)

    def encode(self, batch: TwoSidedBatch) -> Any:
        """Return the vectors of the passages of a batch, in their order."""
        return torch.cat(read_parts(self.model.passage, batch.passages, self.limit))[batch.inverse]

    def read(self, numbers: Sequence[int], view: str, pairs: TrainingPairs | None = None) -> dict[str, Tensor]:
        """Return the inputs of the model for passages."""
        texts = [self.marks[1] + text for text in self.texts(numbers, view, pairs)]
        if not self.family.long_context:
            return self.tokenizer.read(texts, self.family.pieces)
        passages = [(pairs or self.pairs).passages[number] for number in numbers]
        windows = [(passage.before, text, passage.after) for passage, text in zip(passages, texts, strict=True)]
        return self.tokenizer.read_windows(windows, self.family.pieces)

    def read_query(self, queries: Sequence[str]) -> dict[str, Tensor]:
        """Return the inputs of the model for queries."""
        return self.tokenizer.read([self.marks[0] + query for query in queries], self.family.query_pieces)

    def _parts(self, numbers: Sequence[int], view: str) -> tuple[list[dict[str, Tensor]], Tensor]:
        """Return the inputs of passages in parts, or in one part if all must have the same length."""
        if self.family.long_context or self.equal_length:
            return [self.read(numbers, view)], torch.arange(len(numbers), device=self.device)
        texts = [self.marks[1] + text for text in self.texts(numbers, view)]
        return self.tokenizer.read_parts(texts, self.family.pieces)

    def save_weights(self, folder: Path) -> None:
        inner(self.model.passage_encoder).save_pretrained(folder)
        if not self.family.shared:
            inner(self.model.query_encoder).save_pretrained(folder / "query")
        self.tokenizer.base_tokenizer.save(str(folder / "tokenizer.json"))

    def manifest(self) -> Mapping[str, Any]:
        return {
            "pieces": min(self.family.pieces, self.tokenizer.longest),
            "dimensions": self.model.passage_encoder.config.hidden_size,
            "query": self.marks[0],
            "passage": self.marks[1],
            "similarity": self.model.similarity,
        }

    def load_export(self, folder: Path, suffix: str) -> nn.Module:
        return ExportedSides(self, folder, suffix)

    def vectors(self, output: Tensor, inputs: Mapping[str, Tensor]) -> Any:
        """Convert the output of an exported passage network to the input of `scores`."""
        return output

    @property
    def example(self) -> tuple[tuple[Tensor, ...], dict[str, dict[int, str]]]:
        """Example inputs for the export, and the axes of each input."""
        return piece_example(self.tokenizer.names, "texts")


class ExportedSides(nn.Module):
    """The exported networks of queries and passages, with the methods of the original model."""

    def __init__(self, objective: TwoSidedObjective, folder: Path, suffix: str) -> None:
        super().__init__()
        names, own = objective.tokenizer.names, folder / f"query{suffix}"
        self._passage = Exported(folder / f"model{suffix}", names)
        self._query = Exported(own, names) if own.is_file() else self._passage
        self._vectors, self._scores = objective.vectors, objective.model.scores

    def query(self, **inputs: Tensor) -> Tensor:
        return self._query(**inputs)

    def passage(self, **inputs: Tensor) -> Any:
        return self._vectors(self._passage(**inputs), inputs)

    def scores(self, *vectors: Any) -> Tensor:
        with torch.no_grad():
            return self._scores(*vectors)


def inner(encoder: Any) -> Any:
    """Return the Hugging Face encoder itself, without the wrapper of a Longformer."""
    return encoder.encoder if isinstance(encoder, LongEncoder) else encoder

"""Bi-encoder: encodes queries and passages separately. A library encodes each passage once and compares vectors fast.

Reference: Grundmann et al., Self-Supervised Answer Retrieval on Clinical Notes (CAPR), section 3.1: two encoders, or a
shared one with markers that distinguish queries from passages; CLS pooling; dot product in training. Mean pooling,
cosine and nested (matryoshka) vectors are further settings.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from capr.documents import CaprError
from capr.models.cross import CrossObjective, load_teacher
from capr.models.export import export
from capr.models.family import Schedule, option
from capr.models.losses import distillation, listwise
from capr.models.memory import read_whole
from capr.models.pairwise import score_parts
from capr.models.ranking import CandidateList
from capr.models.two_sided import BatchTexts, TwoSidedBatch, TwoSidedFamily, TwoSidedObjective
from capr.supervise.pairs import Draw, TrainingPairs


class BiEncoder(nn.Module):
    """One or two encoders with a pooling and a similarity.

    Args:
        encoder: a Hugging Face encoder for passages and, if shared, for queries.
        shared: whether queries have the same encoder. Otherwise their encoder starts as a copy.
        pooling: `cls` or `mean`.
        similarity: `cosine` or `dot`.
        temperature: the divisor of the scores; 1 for a plain dot product.
    """

    def __init__(
        self,
        encoder: Any,
        shared: bool = True,
        pooling: str = "cls",
        similarity: str = "cosine",
        temperature: float = 0.03,
    ) -> None:
        super().__init__()
        self.passage_encoder = encoder
        self.query_encoder = encoder if shared else copy.deepcopy(encoder)
        self.pooling, self.similarity, self.temperature = pooling, similarity, temperature

    def query(self, **inputs: Tensor) -> Tensor:
        return self._pooled(self.query_encoder, inputs)

    def passage(self, **inputs: Tensor) -> Tensor:
        return self._pooled(self.passage_encoder, inputs)

    def _pooled(self, encoder: Any, inputs: dict[str, Tensor]) -> Tensor:
        # each input: (texts, pieces)
        states = encoder(**inputs).last_hidden_state  # (texts, pieces, size)
        if self.pooling == "mean":
            mask = inputs["attention_mask"][:, :, None].to(states.dtype)  # (texts, pieces, 1)
            pooled: Tensor = (states * mask).sum(1) / mask.sum(1)
        else:
            pooled = states[:, 0]
        return pooled  # (texts, size)

    def scores(self, queries: Tensor, passages: Tensor, dimensions: int | None = None) -> Tensor:
        """Return the similarity of each query and passage in their first dimensions: (queries, passages)."""
        with torch.autocast(queries.device.type, enabled=False):  # 16 bits would cause ties between passages
            queries, passages = queries[:, :dimensions].float(), passages[:, :dimensions].float()
            if self.similarity == "cosine":
                queries, passages = (nn.functional.normalize(vectors, dim=-1) for vectors in (queries, passages))
            return queries @ passages.T / self.temperature


class BiEncoderForExport(nn.Module):
    """One side of a bi-encoder for export: inputs to vectors, normalised if the similarity is the cosine."""

    def __init__(self, model: BiEncoder, encoder: Any, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.encoder, self.names = model, encoder, names

    def forward(self, *inputs: Tensor) -> Tensor:
        pooled = self.model._pooled(self.encoder, dict(zip(self.names, inputs, strict=True)))
        if self.model.similarity == "cosine":
            pooled = pooled / torch.clamp(torch.linalg.vector_norm(pooled, dim=-1, keepdim=True), min=1e-12)
        return pooled  # (texts, size)


def read_sizes(name: str, argument: str) -> tuple[int, ...]:
    """Read `384,192,96` as numbers."""
    sizes = [size.strip() for size in argument.split(",") if size.strip()]
    if not all(size.isdecimal() and int(size) > 0 for size in sizes):
        raise CaprError(f"{name} {argument!r} is not a list of numbers. Fix: write {name} 384,192,96.")
    return tuple(map(int, sizes))


@dataclass(frozen=True, kw_only=True)
class Bi(TwoSidedFamily):
    """Train a bi-encoder from documents, without labels. It makes the vectors of a library.

    capr makes the queries from the documents (see capr supervise): entities are titles and mentions, aspects are
    headings. A twentieth of the documents is for validation. After an interruption, repeat the command with --resume.
    Several GPUs: torchrun --nproc-per-node 4 -m capr train bi ... Needs the extra `train`.

    Example: capr train bi articles.jsonl --base BAAI/bge-small-en-v1.5 -o bi
    """

    kind: ClassVar[str] = "bi-encoder"
    schedule: ClassVar[Schedule] = Schedule(epochs=6, batch=64, learning_rate=5e-5)

    pooling: str = option("cls", "cls or mean.", choices=("cls", "mean"))
    similarity: str = option("cosine", "cosine or dot.", choices=("cosine", "dot"))
    temperature: float = option(0.03, "The divisor of the scores.")
    dimensions: tuple[int, ...] = option(
        (), "Nested sizes of vectors, separated by commas: 384,192,96.", parse=read_sizes, shown=""
    )
    teacher: str = option("", "A ranker that teaches its rankings.", metavar="FOLDER")

    def objective(self, pairs: TrainingPairs, device: str, limit: int = 0) -> BiObjective:
        encoder, tokenizer = self.encoder(device, around=False)
        model = BiEncoder(encoder, self.shared, self.pooling, self.similarity, self.temperature)
        self.load_query_encoder(model)
        teacher = load_teacher(self.teacher, device, limit) if self.teacher else None
        return BiObjective(self, model, pairs, tokenizer, limit, teacher)

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"teacher": Path(self.teacher).name}


class BiObjective(TwoSidedObjective):
    """In-batch softmax for one or several sizes of vectors, and optionally the ranking of a teacher."""

    family: Bi
    model: BiEncoder

    def __init__(
        self,
        family: Bi,
        model: BiEncoder,
        pairs: TrainingPairs,
        tokenizer: Any,
        limit: int = 0,
        teacher: CrossObjective | None = None,
    ) -> None:
        super().__init__(family, model, pairs, tokenizer, limit)
        self.dimensions: Sequence[int | None] = list(family.dimensions) or [None]
        self.teacher = teacher

    def add_teacher_inputs(
        self, batch: TwoSidedBatch, draws: Sequence[Draw], collected: BatchTexts, view: str, rng: random.Random
    ) -> None:
        """Let the teacher score each query with its passage, its negatives and some passages of other queries."""
        if self.teacher is None:
            return
        numbers = collected.numbers
        positions = {number: position for position, number in enumerate(numbers)}
        lists = []
        for draw in draws:
            own = [draw.passage, *(number for number in draw.negatives if number in positions)][:8]
            sample = rng.sample(numbers, min(12, len(numbers)))
            lists.append(list(dict.fromkeys(positions[number] for number in (*own, *sample)))[:8])
        width = min(map(len, lists))
        lists = [positions_of_list[:width] for positions_of_list in lists]
        texts = [
            (query, self.pairs.passages[numbers[position]].view(view))
            for query, positions_of_list in zip(collected.queries, lists, strict=True)
            for position in positions_of_list
        ]
        batch.teacher_positions = torch.tensor(lists).to(self.device)
        batch.teacher_inputs = self.teacher.tokenizer.read_parts(texts, self.teacher.family.pieces)

    @torch.no_grad()
    def teacher_scores(self, batch: TwoSidedBatch) -> tuple[Tensor, Tensor] | None:
        """Return the positions of the passages that the teacher scores, and its scores: (queries, list) each."""
        if self.teacher is None or batch.teacher_positions is None or batch.teacher_inputs is None:
            return None
        queries = len(batch.teacher_positions)
        return batch.teacher_positions, score_parts(self.teacher.model, *batch.teacher_inputs, queries, self.limit)

    def loss(self, batch: TwoSidedBatch) -> Tensor:
        queries = read_whole(self.model.query, batch.queries, self.limit)  # (queries, size)
        passages = self.encode(batch)  # (passages, size)
        teacher_scores = self.teacher_scores(batch)
        total = torch.zeros((), device=queries.device)
        for dimensions in self.dimensions:
            scores = self.model.scores(queries, passages, dimensions)  # (queries, passages)
            total = total + in_batch_loss(scores, batch, teacher_scores)
        return total / len(self.dimensions)

    @torch.no_grad()
    def score_lists(
        self, pairs: TrainingPairs, lists: Sequence[CandidateList], view: str, size: int = 256
    ) -> list[list[float]]:
        numbers = sorted({number for _, candidates, _ in lists for number in candidates})
        queries = [query for query, _, _ in lists]
        passage_vectors = [
            read_whole(self.model.passage, self.read(numbers[i : i + size], view, pairs), self.limit)
            for i in range(0, len(numbers), size)
        ]
        query_vectors = [
            read_whole(self.model.query, self.read_query(queries[i : i + size]), self.limit)
            for i in range(0, len(queries), size)
        ]
        scores = self.model.scores(torch.cat(query_vectors).float(), torch.cat(passage_vectors).float()).cpu()
        positions = {number: position for position, number in enumerate(numbers)}
        return [
            scores[row, [positions[number] for number in candidates]].tolist()
            for row, (_, candidates, _) in enumerate(lists)
        ]

    def manifest(self) -> Mapping[str, Any]:
        return {"kind": "encoder", **super().manifest(), "pooling": self.model.pooling}

    def export(self, folder: Path) -> None:
        example, axes = self.example
        names = self.tokenizer.names
        export(BiEncoderForExport(self.model, self.model.passage_encoder, names), example, axes, folder)
        if not self.family.shared:
            export(BiEncoderForExport(self.model, self.model.query_encoder, names), example, axes, folder, "query")


def in_batch_loss(scores: Tensor, batch: TwoSidedBatch, teacher_scores: tuple[Tensor, Tensor] | None) -> Tensor:
    """Return the in-batch softmax loss, plus the distance from the teacher's rankings if there is a teacher.

    Args:
        scores: (queries, passages).
        batch: the batch that was scored.
        teacher_scores: the positions of the passages that the teacher scores, and its scores.
    """
    loss = listwise(scores, batch.answers, batch.left_out)
    if teacher_scores is None:
        return loss
    positions, target_scores = teacher_scores
    return loss + distillation(scores.gather(1, positions), target_scores)

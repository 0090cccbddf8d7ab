"""Rankers that read a query and a passage together and learn from lists: one answering passage and some negatives.

The network returns `scores` (pairs,) for pairs of query and passage, and may return scores of sentences after them. The
loss is a listwise softmax (CAPR, equation 1): the score of the answering passage against the scores of the negatives.
The loss ignores negatives that may also answer the query.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from capr.models.losses import listwise
from capr.models.memory import Inputs, read_parts
from capr.models.ranking import CandidateList, Ranking, RankingObjective
from capr.supervise.pairs import Draw, TrainingPairs

Texts = Sequence[tuple[str, str]]  # pairs of a query and a passage


@dataclass
class PairBatch:
    """The tensors of a training step, on the device.

    Attributes:
        texts: query and passage of each pair, list by list.
        parts: the inputs of the network. The pairs of a part have similar lengths.
        inverse: (pairs,), the row in `parts` of each pair.
        answers: (lists,), the position of the answering passage in its list.
        left_out: (lists, passages), true for negatives that may also answer.
        teacher_inputs: the inputs of each teacher: its parts, and the row of each pair in them.
    """

    texts: Texts
    parts: list[Inputs]
    inverse: Tensor
    answers: Tensor
    left_out: Tensor
    teacher_inputs: Sequence[tuple[list[Inputs], Tensor]] = ()


class PairObjective(RankingObjective):
    """Listwise softmax: each query with its passage and n negatives."""

    def __init__(self, family: Ranking, model: nn.Module, pairs: TrainingPairs, device: str, limit: int = 0) -> None:
        super().__init__(pairs, device, limit)
        self.family, self.model = family, model

    @abstractmethod
    def read(self, texts: Texts) -> Inputs:
        """Return the inputs of the network for pairs of query and passage: one row per pair."""

    def read_parts(self, texts: Texts) -> tuple[list[Inputs], Tensor]:
        """Return the inputs of a batch in parts, and the row of each pair in them."""
        return [self.read(texts)], torch.arange(len(texts), device=self.device)

    def batch(self, draws: Sequence[Draw], rng: random.Random) -> PairBatch:
        view, count = self.family.view(rng), self.family.negatives
        texts: list[tuple[str, str]] = []
        left_out = torch.zeros(len(draws), 1 + count, dtype=torch.bool)
        for row, draw in enumerate(draws):
            query, answering = draw.draw_wording(rng), self.pairs.answering(draw)
            negatives = rng.sample(draw.negatives, min(count, len(draw.negatives)))
            negatives += self._random_negatives(count - len(negatives), answering, rng)
            if self.family.false_negatives:
                left_out[row, 1:] = torch.tensor([number in answering for number in negatives], dtype=torch.bool)
            texts += [(query, text) for text in self.texts([draw.passage, *negatives], view)]
        answers = torch.zeros(len(draws), dtype=torch.long, device=self.device)
        return PairBatch(texts, *self.read_parts(texts), answers, left_out.to(self.device))

    def _random_negatives(self, count: int, answering: set[int], rng: random.Random) -> list[int]:
        """Return random passages that do not answer, or any passages if too few do not answer."""
        pool = range(len(self.pairs.passages))
        negatives: list[int] = []
        for _ in range(20 * count):
            if len(negatives) == count:
                break
            if (number := rng.choice(pool)) not in answering:
                negatives.append(number)
        return negatives + [rng.choice(pool) for _ in range(count - len(negatives))]

    def loss(self, batch: PairBatch) -> Tensor:
        return listwise(self.scores(batch), batch.answers, batch.left_out)

    def scores(self, batch: PairBatch) -> Tensor:
        """Return the scores of a batch: (lists, passages per list)."""
        return score_parts(self.model, batch.parts, batch.inverse, len(batch.answers), self.limit)

    @torch.no_grad()
    def score_lists(
        self, pairs: TrainingPairs, lists: Sequence[CandidateList], view: str, size: int = 512
    ) -> list[list[float]]:
        texts = [(query, text) for query, candidates, _ in lists for text in self.texts(candidates, view, pairs)]
        order = sorted(range(len(texts)), key=lambda i: len(texts[i][1]))  # similar lengths need little padding
        scores = [0.0] * len(texts)
        for begin in range(0, len(order), size):
            part = order[begin : begin + size]
            inputs = [self.read([texts[i] for i in part])]
            outputs = read_parts(self.model, inputs, self.limit)
            part_scores = torch.cat([passage_scores(output) for output in outputs])
            for i, score in zip(part, part_scores.tolist(), strict=True):
                scores[i] = score
        remaining = iter(scores)
        return [[next(remaining) for _ in candidates] for _, candidates, _ in lists]


def score_parts(model: nn.Module, parts: Sequence[Inputs], inverse: Tensor, lists: int, limit: int) -> Tensor:
    """Return the scores of pairs that were read in parts: (lists, pairs per list)."""
    scores = [passage_scores(output) for output in read_parts(model, parts, limit)]
    return torch.cat(scores)[inverse].reshape(lists, -1)


def passage_scores(output: Tensor | tuple[Tensor, ...]) -> Tensor:
    """Return the scores of passages (pairs,), without the scores of sentences that may follow them."""
    scores = output if isinstance(output, Tensor) else output[0]
    return scores.reshape(-1)


def to_device(tensors: Inputs, device: str) -> Inputs:
    """Return copies of tensors on a device."""
    return {name: tensor.to(device, non_blocking=True) for name, tensor in tensors.items()}

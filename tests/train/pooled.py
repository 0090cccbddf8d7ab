"""The mean of word vectors: the score of a query and a passage is the cosine of the means of their word vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from capr.models.family import Schedule, option
from capr.models.word_ranking import WordRanking


class PooledNetwork(nn.Module):
    """Trained word vectors, and a temperature."""

    def __init__(self, vectors: Tensor, temperature: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(vectors, freeze=False, padding_idx=0)
        self.temperature = temperature

    def forward(self, query_ids: Tensor, passage_ids: Tensor) -> Tensor:
        # query_ids: (pairs, query words); passage_ids: (pairs, passage words)
        query, passage = self._mean(query_ids), self._mean(passage_ids)  # (pairs, size)
        return nn.functional.cosine_similarity(query, passage) / self.temperature  # (pairs,)

    def _mean(self, ids: Tensor) -> Tensor:
        mask = (ids > 0).float()[:, :, None]  # (pairs, words, 1)
        return (self.embedding(ids) * mask).sum(1) / mask.sum(1).clamp(min=1)


@dataclass(frozen=True, kw_only=True)
class Pooled(WordRanking):
    """Train a mean of word vectors: the simplest ranker.

    Example: capr train pooled articles.jsonl --vectors glove.txt -o pooled
    """

    schedule: ClassVar[Schedule] = Schedule(epochs=20, batch=32, learning_rate=3e-3)

    negatives: int = option(7, "Hard negatives per query: passages that look like an answer.", least=0)
    temperature: float = option(0.1, "The divisor of the cosines.")

    def network(self, vectors: Tensor) -> nn.Module:
        return PooledNetwork(vectors, self.temperature)

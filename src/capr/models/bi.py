"""Bi-encoder: query and passage become vectors by themselves, so that passages are encoded once and compared fast.

Reference: Grundmann et al., Self-Supervised Answer Retrieval on Clinical Notes (CAPR), section 3.1: two encoders, or a
shared one with markers that tell query and passage apart; CLS pooling; dot product in training. Mean pooling, cosine
and nested (matryoshka) vectors are further settings.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn


class BiEncoder(nn.Module):
    """One or two encoders and a way to pool and compare.

    Args:
        encoder: a Hugging Face encoder, for passages and, if shared, for queries.
        shared: whether queries have the same encoder; a copy of it to begin with, if not.
        pooling: `cls` or `mean`.
        similarity: `cosine` or `dot`.
        temperature: by which scores are divided; 1 for a plain dot product.
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
        """How well each passage answers each query, by their first dimensions: (queries, passages)."""
        with torch.autocast(queries.device.type, enabled=False):  # 16 bits would make passages equal that are not
            queries, passages = queries[:, :dimensions].float(), passages[:, :dimensions].float()
            if self.similarity == "cosine":
                queries, passages = (nn.functional.normalize(vectors, dim=-1) for vectors in (queries, passages))
            return queries @ passages.T / self.temperature


class Side(nn.Module):
    """One side of a bi-encoder, as it is exported: inputs to vectors, of length 1 if they are compared by cosine."""

    def __init__(self, model: BiEncoder, encoder: Any, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.encoder, self.names = model, encoder, names

    def forward(self, *inputs: Tensor) -> Tensor:
        pooled = self.model._pooled(self.encoder, dict(zip(self.names, inputs, strict=True)))
        if self.model.similarity == "cosine":
            pooled = pooled / torch.clamp(torch.linalg.vector_norm(pooled, dim=-1, keepdim=True), min=1e-12)
        return pooled  # (texts, size)

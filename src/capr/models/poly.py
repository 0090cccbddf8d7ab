"""Poly-encoder: the query's vector attends to the token vectors of a passage, which can be kept.

Reference: Grundmann et al. (CAPR), equation 2. As printed it multiplies a weight vector of the passage's length with a
fixed matrix, which cannot be meant. Here, with passage tokens P (n x d) and the query's vector q (d):

    a = softmax(P q + mask),  x = P^T a,  z = relu(W x),  score = z . q

`project=False` leaves out W and relu: score = x . q, the final attention of Humeau et al., Poly-encoders, 2020, with
all tokens for its codes; `codes` > 0 learns that many codes, each of which attends to the tokens first.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn

from capr.models.long import LongEncoder


class PolyEncoder(nn.Module):
    """Encoders of query and passage, and the attention between them.

    Args:
        encoder: a Hugging Face encoder, for passages and, if shared, for queries.
        shared: whether queries have the same encoder.
        project: whether what was attended to passes through W and relu (CAPR) or not (Humeau).
        scaled: whether the products before the softmax are divided by sqrt(d).
        codes: how many vectors stand for a passage; 0 for all of its tokens.
        similarity: `dot` or `cosine` of z and q.
        temperature: by which scores are divided.
    """

    def __init__(
        self,
        encoder: Any,
        shared: bool = True,
        project: bool = True,
        scaled: bool = False,
        codes: int = 0,
        similarity: str = "dot",
        temperature: float = 1.0,
    ) -> None:
        super().__init__()
        size = encoder.config.hidden_size
        self.passage_encoder = encoder
        self.query_encoder = encoder if shared else copy.deepcopy(encoder)
        self.projection = nn.Linear(size, size, bias=False) if project else None
        self.codes = nn.Parameter(torch.rand(codes, size)) if codes else None
        self.scale = 1 / math.sqrt(size) if scaled else 1.0
        self.similarity, self.temperature = similarity, temperature
        if self.projection is not None:
            nn.init.eye_(self.projection.weight)

    def query(self, **inputs: Tensor) -> Tensor:
        states: Tensor = self.query_encoder(**inputs).last_hidden_state
        return states[:, 0]  # (queries, size)

    def passage(self, inside: Tensor | None = None, **inputs: Tensor) -> tuple[Tensor, Tensor]:
        """The vectors of passages and which of them count; `inside` marks the tokens of the passage in its context."""
        if isinstance(self.passage_encoder, LongEncoder):
            tokens = self.passage_encoder(**inputs, inside=inside).last_hidden_state
        else:
            tokens = self.passage_encoder(**inputs).last_hidden_state  # (passages, pieces, size)
        counts = (inputs["attention_mask"] if inside is None else inside).bool()  # (passages, pieces)
        if self.codes is None:
            return tokens, counts
        weights = (torch.einsum("md,pnd->pmn", self.codes, tokens) * self.scale).masked_fill(
            ~counts[:, None], float("-inf")
        )
        attended = torch.einsum("pmn,pnd->pmd", weights.float().softmax(-1).to(tokens.dtype), tokens)
        return attended, torch.ones(attended.shape[:2], dtype=torch.bool, device=attended.device)

    def scores(self, queries: Tensor, passages: tuple[Tensor, Tensor]) -> Tensor:
        """(queries, passages), from the vectors that `query` and `passage` give."""
        tokens, counts = passages  # (passages, pieces, size), (passages, pieces)
        with torch.autocast(queries.device.type, enabled=False):  # 16 bits would make passages equal that are not
            tokens, queries = tokens.float(), queries.float()
            products = torch.einsum("qd,pnd->qpn", queries, tokens) * self.scale
            weights = products.masked_fill(~counts[None], float("-inf")).softmax(-1)  # (queries, passages, pieces)
            attended = torch.einsum("qpn,pnd->qpd", weights, tokens)  # (queries, passages, size)
            if self.projection is not None:
                attended = nn.functional.linear(attended, self.projection.weight.float()).relu()
            if self.similarity == "cosine":
                attended, queries = (nn.functional.normalize(vectors, dim=-1) for vectors in (attended, queries))
            return torch.einsum("qpd,qd->qp", attended, queries) / self.temperature


class Query(nn.Module):
    """The side of queries as it is exported: inputs to vectors."""

    def __init__(self, model: PolyEncoder, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.model.query(**dict(zip(self.names, inputs, strict=True)))  # (queries, size)


class Tokens(nn.Module):
    """The side of passages as it is exported: inputs to the vectors that are kept of each."""

    def __init__(self, model: PolyEncoder, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: Tensor) -> Tensor:
        tokens, _ = self.model.passage(**dict(zip(self.names, inputs, strict=True)))
        return tokens  # (passages, pieces or codes, size)

"""Poly-encoder: the vector of a query attends to the token vectors of a passage, which an index can store.

Reference: Grundmann et al. (CAPR), equation 2. As printed, it multiplies a fixed matrix by a vector as long as the
passage, which cannot be the intention. Here, with passage tokens P (n x d) and query vector q (d):

    a = softmax(P q + mask),  x = P^T a,  z = relu(W x),  score = z . q

`project=False` omits W and relu: score = x . q, the final attention of Humeau et al., Poly-encoders, 2020, with all
tokens as codes. With `codes` > 0, the network learns that many codes, and each code first attends to the tokens.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from capr.models.bases import BUILT_IN, weights_of
from capr.models.export import export
from capr.models.family import Schedule, option
from capr.models.long_context import LongEncoder
from capr.models.memory import read_parts
from capr.models.ranking import CandidateList
from capr.models.two_sided import TwoSidedBatch, TwoSidedFamily, TwoSidedObjective
from capr.supervise.pairs import TrainingPairs

ATTENTION_WEIGHTS = "poly.pt"  # the weights besides those of the encoders
CACHED = 4096  # passages with vectors in memory while lists are scored


class PolyEncoder(nn.Module):
    """Encoders of query and passage, and the attention between them.

    Args:
        encoder: a Hugging Face encoder for passages and, if shared, for queries.
        shared: whether queries have the same encoder.
        project: whether the attended vector passes through W and relu (CAPR), or not (Humeau).
        scaled: whether the products before the softmax are divided by sqrt(d).
        codes: number of vectors per passage; 0 for one per token.
        similarity: `dot` or `cosine` of z and q.
        temperature: the divisor of the scores.
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
        """Return the vectors of passages, and a mask of the vectors that count.

        `inside` marks the tokens of the passage, if the inputs include the text around it.
        """
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
        """Return the scores (queries, passages) for the outputs of `query` and `passage`."""
        tokens, counts = passages  # (passages, pieces, size), (passages, pieces)
        with torch.autocast(queries.device.type, enabled=False):  # 16 bits would cause ties between passages
            tokens, queries = tokens.float(), queries.float()
            products = torch.einsum("qd,pnd->qpn", queries, tokens) * self.scale
            weights = products.masked_fill(~counts[None], float("-inf")).softmax(-1)  # (queries, passages, pieces)
            attended = torch.einsum("qpn,pnd->qpd", weights, tokens)  # (queries, passages, size)
            if self.projection is not None:
                attended = nn.functional.linear(attended, self.projection.weight.float()).relu()
            if self.similarity == "cosine":
                attended, queries = (nn.functional.normalize(vectors, dim=-1) for vectors in (attended, queries))
            return torch.einsum("qpd,qd->qp", attended, queries) / self.temperature


class PolyQueriesForExport(nn.Module):
    """The query side for export: query inputs to vectors."""

    def __init__(self, model: PolyEncoder, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.model.query(**dict(zip(self.names, inputs, strict=True)))  # (queries, size)


class PolyPassagesForExport(nn.Module):
    """The passage side for export: passage inputs to token vectors, which an index can store."""

    def __init__(self, model: PolyEncoder, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: Tensor) -> Tensor:
        tokens, _ = self.model.passage(**dict(zip(self.names, inputs, strict=True)))
        return tokens  # (passages, pieces or codes, size)


@dataclass(frozen=True, kw_only=True)
class Poly(TwoSidedFamily):
    """Train a poly-encoder from documents: a ranker that stores the token vectors of passages.

    capr makes the queries from the documents, as in capr train bi. Needs the extra `train`.

    Example: capr train poly articles.jsonl --base BAAI/bge-small-en-v1.5 -o poly
    """

    kind: ClassVar[str] = "poly-encoder"
    schedule: ClassVar[Schedule] = Schedule(epochs=6, batch=32, learning_rate=5e-5)

    project: bool = option(True, "CAPR's equation 2, or Humeau's plain attention.", name="--project/--no-project")
    scaled: bool = option(False, "Divide by sqrt(d) before the softmax.", name="--scaled/--no-scaled")
    codes: int = option(0, "Vectors per passage; 0 for all tokens.", least=0)
    similarity: str = option("dot", "dot or cosine.", choices=("dot", "cosine"))
    temperature: float = option(1.0, "The divisor of the scores.")

    def objective(self, pairs: TrainingPairs, device: str, limit: int = 0) -> PolyObjective:
        encoder, tokenizer = self.encoder(device, around=True)
        model = PolyEncoder(
            encoder, self.shared, self.project, self.scaled, self.codes, self.similarity, self.temperature
        )
        self.load_query_encoder(model)
        path = Path(weights_of(self.base, *BUILT_IN)) / ATTENTION_WEIGHTS
        if path.is_file():
            weights = torch.load(path, map_location="cpu", weights_only=True)
            shapes = {name: weight.shape for name, weight in model.state_dict().items()}
            fitting = {name: weight for name, weight in weights.items() if shapes.get(name) == weight.shape}
            model.load_state_dict(fitting, strict=False)
        return PolyObjective(self, model, pairs, tokenizer, limit)


class PolyObjective(TwoSidedObjective):
    """In-batch softmax over the attention of each query to the tokens of each passage."""

    family: Poly
    model: PolyEncoder
    equal_length = True

    def encode(self, batch: TwoSidedBatch) -> tuple[Tensor, Tensor]:
        return _join(read_parts(self.model.passage, batch.passages, self.limit))

    @torch.no_grad()
    def score_lists(
        self, pairs: TrainingPairs, lists: Sequence[CandidateList], view: str, size: int = 64
    ) -> list[list[float]]:
        scores = []
        cache: dict[int, Tensor] = {}  # the token vectors of passages, because lists share many passages
        for query, candidates, _ in lists:
            if len(cache) > CACHED:
                cache.clear()
            new = [number for number in dict.fromkeys(candidates) if number not in cache]
            for begin in range(0, len(new), size):
                part = new[begin : begin + size]
                inputs = [self.read(part, view, pairs)]
                tokens, counts = _join(read_parts(self.model.passage, inputs, self.limit))
                cache |= {number: tokens[row][counts[row]] for row, number in enumerate(part)}
            rows = [cache[number] for number in candidates]
            lengths = torch.tensor([len(row) for row in rows], device=rows[0].device)
            tokens = pad_sequence(rows, batch_first=True)  # (candidates, pieces, size)
            counts = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
            query_vector = self.model.query(**self.read_query([query]))
            scores.append(self.model.scores(query_vector, (tokens, counts))[0].tolist())
        return scores

    def save_weights(self, folder: Path) -> None:
        super().save_weights(folder)
        weights = {name: weight for name, weight in self.model.state_dict().items() if "encoder." not in name}
        torch.save(weights, folder / ATTENTION_WEIGHTS)

    def manifest(self) -> Mapping[str, Any]:
        attention = {"scale": self.model.scale, "codes": self.family.codes}
        return {"kind": "poly", **super().manifest(), "pooling": "cls", **attention}

    def export(self, folder: Path) -> None:
        example, axes = self.example
        export(PolyPassagesForExport(self.model, self.tokenizer.names), example, axes, folder)
        export(PolyQueriesForExport(self.model, self.tokenizer.names), example, axes, folder, "query")
        if self.model.projection is not None:
            np.save(folder / "projection.npy", self.model.projection.weight.detach().cpu().float().numpy())

    def vectors(self, output: Tensor, inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        counts = torch.ones(output.shape[:2]) if self.family.codes else inputs["attention_mask"]
        return output, counts.bool()  # (passages, pieces or codes, size)


def _join(parts: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Return the tokens of all passages, and the mask of the tokens that count."""
    tokens, counts = zip(*parts, strict=True)
    return torch.cat(tokens), torch.cat(counts)

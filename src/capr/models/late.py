"""Late interaction: an encoder that gives a text one vector, and a short vector for each of its word pieces as well.

The vector finds passages; the vectors of word pieces put the best of them in order. With query pieces q_i and passage
pieces p_j, all of length 1, the score of a passage is MaxSim, the mean over i of max_j q_i . p_j. One pass of the
network gives both, so late interaction costs an index no second encoder. A query is padded with [MASK] to a fixed
number of pieces, whose vectors stand for words that the query leaves out; no other piece attends to them, so they do
not change the query's own vector.

References: Khattab and Zaharia, ColBERT, 2020; Santhanam et al., ColBERTv2, 2022 (learning from a cross-encoder);
Grundmann et al. (CAPR), whose poly-encoder keeps the vectors of word pieces, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from capr.documents import CaprError
from capr.models.bases import BUILT_IN, weights_of
from capr.models.bi import Bi, BiEncoder, BiObjective, in_batch_loss
from capr.models.cross import load_teacher
from capr.models.export import Exported, export
from capr.models.family import option
from capr.models.memory import read_parts
from capr.models.ranking import CandidateList
from capr.models.two_sided import TwoSidedBatch
from capr.supervise.pairs import TrainingPairs

MASKS = ("[MASK]", "<mask>")
PROJECTION = "late.pt"  # the weights of the projection, beside the encoder's


class LateVectors(NamedTuple):
    """The vectors of texts.

    Attributes:
        whole: (texts, size), one vector per text.
        pieces: (texts, pieces, short size), of length 1; zero for padding.
    """

    whole: Tensor
    pieces: Tensor


class LateEncoder(BiEncoder):
    """An encoder with a linear layer from the states of word pieces to short vectors.

    Args:
        encoder: a Hugging Face encoder, for queries and passages.
        short: the size of the vectors of word pieces.
        piece_temperature: the divisor of MaxSim.
        options: those of `BiEncoder`.
    """

    def __init__(self, encoder: Any, short: int, piece_temperature: float, **options: Any) -> None:
        super().__init__(encoder, **options)
        self.projection = nn.Linear(encoder.config.hidden_size, short, bias=False)
        self.piece_temperature = piece_temperature

    def read(self, counts: Tensor | None = None, **inputs: Tensor) -> LateVectors:
        """Read texts; `counts` (texts, pieces) says which pieces have a vector, by default all but padding."""
        states = self.passage_encoder(**inputs).last_hidden_state  # (texts, pieces, size)
        pieces = nn.functional.normalize(self.projection(states), dim=-1)  # (texts, pieces, short)
        mask = inputs["attention_mask"] if counts is None else counts
        return LateVectors(states[:, 0], pieces * mask[:, :, None].to(pieces.dtype))

    def maxsim(self, queries: Tensor, passages: Tensor) -> Tensor:
        """Compare word pieces: (queries, passages), the mean over the query's pieces of the best product."""
        products = torch.einsum("qis,pjs->qpij", queries, passages)  # (queries, passages, pieces, pieces)
        best = products.masked_fill((passages == 0).all(-1)[None, :, None], -1).amax(-1)  # (queries, passages, pieces)
        return best.float().sum(-1) / (queries != 0).any(-1).sum(-1)[:, None]


class LateEncoderForExport(nn.Module):
    """A late-interaction encoder as it is exported: inputs to the vector of a text and those of its pieces."""

    def __init__(self, model: LateEncoder, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        states = self.model.passage_encoder(**dict(zip(self.names, inputs, strict=True))).last_hidden_state
        whole, pieces = states[:, 0], self.model.projection(states)
        return unit(whole), unit(pieces)  # (texts, size), (texts, pieces, short)


def unit(vectors: Tensor) -> Tensor:
    """Scale vectors to length 1."""
    return vectors / torch.clamp(torch.linalg.vector_norm(vectors, dim=-1, keepdim=True), min=1e-12)


@dataclass(frozen=True, kw_only=True)
class Late(Bi):
    """Train an encoder with late interaction from documents: it makes the vectors of a library, and re-ranks.

    It learns as capr train bi does, and gives every word piece a short vector as well, which a search uses to re-rank
    its best passages. Needs the extra `train`.

    Example: capr train late articles.jsonl --base BAAI/bge-small-en-v1.5 -o late
    """

    kind: ClassVar[str] = "late-interaction encoder"

    piece_dimensions: int = option(64, "Dimensions of the vectors of word pieces.", least=8)
    min_query_pieces: int = option(32, "Pieces that a query is padded to with [MASK].", least=0)
    piece_temperature: float = option(0.02, "The divisor of the scores of word pieces.")

    def objective(self, pairs: TrainingPairs, device: str, limit: int = 0) -> LateObjective:
        encoder, tokenizer = self.encoder(device, around=False)
        model = LateEncoder(
            encoder,
            self.piece_dimensions,
            self.piece_temperature,
            similarity=self.similarity,
            temperature=self.temperature,
        )
        path = Path(weights_of(self.base, *BUILT_IN)) / PROJECTION
        if path.is_file():
            model.projection.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
        teacher = load_teacher(self.teacher, device, limit) if self.teacher else None
        return LateObjective(self, model, pairs, tokenizer, limit, teacher)


class LateObjective(BiObjective):
    """In-batch softmax of the vectors of texts and of MaxSim, and perhaps a teacher's ranking of each list."""

    family: Late
    model: LateEncoder
    measured: str = "both"  # the scores that `score_lists` returns: `whole`, `pieces`, or the mean of both

    @cached_property
    def mask(self) -> int:
        """The number of the piece that pads queries.

        Raises:
            CaprError: the base has none.
        """
        for token in MASKS:
            if (number := self.tokenizer.base_tokenizer.token_to_id(token)) is not None:
                return int(number)
        fix = "use a base that was pretrained with masks, such as a BERT"
        raise CaprError(f"the tokenizer of {self.family.base} has no {' or '.join(MASKS)}. Fix: {fix}.")

    def read_query(self, queries: Sequence[str]) -> dict[str, Tensor]:
        """Read queries, padded with [MASK]; `counts` marks the pieces that have a vector."""
        inputs = super().read_query(queries)
        ids, attended = inputs["input_ids"], inputs["attention_mask"]
        width = max(self.family.min_query_pieces, ids.shape[1])
        masks = torch.full((len(ids), width), self.mask, device=ids.device)
        masks[:, : ids.shape[1]] = torch.where(attended.bool(), ids, masks[:, : ids.shape[1]])
        count = torch.arange(width, device=ids.device)[None]
        lengths = attended.sum(1, keepdim=True)
        wanted = count < torch.clamp(lengths, min=self.family.min_query_pieces)
        padded = {name: nn.functional.pad(tensor, (0, width - ids.shape[1])) for name, tensor in inputs.items()}
        return padded | {"input_ids": masks, "counts": wanted.long()}

    def loss(self, batch: TwoSidedBatch) -> Tensor:
        (queries,) = self.vectors_of([batch.queries])
        parts = self.vectors_of(batch.passages)
        whole = torch.cat([part.whole for part in parts])[batch.inverse]
        pieces = join_padded([part.pieces for part in parts])[batch.inverse]
        teacher_scores = self.teacher_scores(batch)
        by_whole = self.model.scores(queries.whole, whole)
        by_pieces = self.model.maxsim(queries.pieces, pieces) / self.model.piece_temperature
        return in_batch_loss(by_whole, batch, teacher_scores) + in_batch_loss(by_pieces, batch, teacher_scores)

    def vectors_of(self, parts: Sequence[dict[str, Tensor]]) -> list[LateVectors]:
        """Read texts in parts."""
        return read_parts(self.model.read, parts, self.limit)

    @torch.no_grad()
    def score_lists(
        self, pairs: TrainingPairs, lists: Sequence[CandidateList], view: str, size: int = 256
    ) -> list[list[float]]:
        numbers = sorted({number for _, candidates, _ in lists for number in candidates})
        order = sorted(numbers, key=lambda number: len(pairs.passages[number].text))
        wholes: dict[int, Tensor] = {}
        pieces: dict[int, Tensor] = {}
        for begin in range(0, len(order), size):
            part = order[begin : begin + size]
            for vectors in self.vectors_of([self.read(part, view, pairs)]):
                wholes |= dict(zip(part, vectors.whole, strict=True))
                pieces |= dict(zip(part, vectors.pieces, strict=True))
        ranked = []
        for query, candidates, _ in lists:
            (vectors,) = self.vectors_of([self.read_query([query])])
            whole = self.model.scores(vectors.whole, torch.stack([wholes[number] for number in candidates]))[0]
            near = [
                self.model.maxsim(
                    vectors.pieces, join_padded([pieces[number][None] for number in candidates[i : i + size]])
                )
                for i in range(0, len(candidates), size)
            ]
            scores = {"whole": whole * self.model.temperature, "pieces": torch.cat(near, 1)[0]}
            chosen = list(scores.values()) if self.measured == "both" else [scores[self.measured]]
            ranked.append(torch.stack(chosen).mean(0).tolist())
        return ranked

    def save_weights(self, folder: Path) -> None:
        super().save_weights(folder)
        torch.save(self.model.projection.state_dict(), folder / PROJECTION)

    def manifest(self) -> Mapping[str, Any]:
        return {
            **super().manifest(),
            "piece_dimensions": self.family.piece_dimensions,
            "min_query_pieces": self.family.min_query_pieces,
        }

    def export(self, folder: Path) -> None:
        example, axes = self.example
        outputs = {"vectors": {0: "texts"}, "word_pieces": {0: "texts", 1: "pieces"}}
        export(LateEncoderForExport(self.model, self.tokenizer.names), example, axes, folder, outputs=outputs)

    def load_export(self, folder: Path, suffix: str) -> nn.Module:
        return ExportedLate(self, folder / f"model{suffix}")


class ExportedLate(nn.Module):
    """The exported network, with the methods of the model that it comes from."""

    def __init__(self, objective: LateObjective, file: Path) -> None:
        super().__init__()
        self._network = Exported(file, objective.tokenizer.names)
        self.scores, self.maxsim = objective.model.scores, objective.model.maxsim
        self.temperature = objective.model.temperature

    def read(self, counts: Tensor | None = None, **inputs: Tensor) -> LateVectors:
        whole, pieces = self._network.outputs(**inputs)
        mask = inputs["attention_mask"] if counts is None else counts
        return LateVectors(whole, pieces * mask[:, :, None])


def join_padded(parts: Sequence[Tensor]) -> Tensor:
    """Join the vectors of parts with different numbers of pieces: (texts, pieces, short), zero for padding."""
    width = max(part.shape[1] for part in parts)
    return torch.cat([nn.functional.pad(part, (0, 0, 0, width - part.shape[1])) for part in parts])

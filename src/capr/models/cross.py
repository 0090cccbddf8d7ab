"""Cross-encoder: reads query and passage together and returns one score. It is the best ranker, and the slowest.

Reference: Grundmann et al. (CAPR), section 3.3: `[CLS] query [SEP] passage [SEP]`, a linear layer on CLS. The loss is
listwise: the answering passage against n negatives.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from capr.models.bases import BUILT_IN, KEPT, PieceTokenizer, load_classifier, load_tokenizer, weights_of
from capr.models.export import Exported, export, piece_example
from capr.models.family import Schedule, option
from capr.models.layers import cut_inside
from capr.models.losses import distillation, listwise
from capr.models.memory import Inputs
from capr.models.pairwise import PairBatch, PairObjective, Texts, score_parts
from capr.models.ranking import Ranking
from capr.runtime.manifest import lacking
from capr.supervise.pairs import Draw, TrainingPairs


class CrossEncoder(nn.Module):
    """A Hugging Face sequence classifier with one output."""

    def __init__(self, classifier: Any) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, **inputs: Tensor) -> Tensor:
        # each input: (pairs, pieces)
        scores: Tensor = self.classifier(**inputs).logits
        return scores[:, 0].float()  # (pairs,)


class CrossEncoderForExport(nn.Module):
    """A cross-encoder for export: inputs to scores."""

    def __init__(self, model: CrossEncoder, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.model(**dict(zip(self.names, inputs, strict=True)))[:, None]  # (pairs, 1)


@dataclass(frozen=True, kw_only=True)
class Cross(Ranking):
    """Train a cross-encoder from documents: a ranker that reads query and passage together.

    capr makes the queries from the documents, as in capr train bi. With --teacher and --layers, a large ranker teaches
    a small one. Needs the extra `train`.

    Example: capr train cross articles.jsonl --base cross-encoder/ms-marco-MiniLM-L-12-v2 -o cross
    """

    kind: ClassVar[str] = "cross-encoder"
    schedule: ClassVar[Schedule] = Schedule(epochs=3, batch=16, learning_rate=4e-5)

    base: str = option(
        help="A folder or name of the Hub, or encoder, ranker or reader.",
        metavar="MODEL",
    )
    layers: int = option(0, "Layers of the base to keep; 0 for all.", least=0)
    negatives: int = option(15, "Hard negatives per query: passages that look like an answer.", least=0)
    pieces: int = option(288, "Maximum number of word pieces of query and passage.", least=8)
    teachers: tuple[str, ...] = option(
        (), "A ranker that teaches its rankings; may be repeated.", name="--teacher", metavar="FOLDER"
    )
    label_weight: float = option(0.3, "The weight of the labels in the loss. The weight of the teachers is 1.")

    def objective(self, pairs: TrainingPairs, device: str, limit: int = 0) -> CrossObjective:
        base = weights_of(self.base, *BUILT_IN)
        classifier = load_classifier(base)
        if self.layers:
            cut_inside(classifier, self.layers)
        tokenizer = PieceTokenizer(load_tokenizer(base), classifier, device)
        teachers = [load_teacher(teacher, device, limit) for teacher in self.teachers]
        return CrossObjective(self, CrossEncoder(classifier), pairs, tokenizer, limit, teachers)

    def check(self) -> None:
        self.objective(TrainingPairs([], []), "cpu")

    def settings(self) -> dict[str, Any]:
        folders = {"base": Path(self.base).name, "teachers": [Path(teacher).name for teacher in self.teachers]}
        return super().settings() | folders


class CrossObjective(PairObjective):
    """Listwise softmax, and the rankings that the teachers give the same lists."""

    family: Cross
    model: CrossEncoder

    def __init__(
        self,
        family: Cross,
        model: CrossEncoder,
        pairs: TrainingPairs,
        tokenizer: PieceTokenizer,
        limit: int = 0,
        teachers: Sequence[CrossObjective] = (),
    ) -> None:
        super().__init__(family, model, pairs, tokenizer.device, limit)
        self.tokenizer, self.teachers = tokenizer, teachers
        self._reads_alike = [teacher.tokenizer.reads_as(tokenizer) for teacher in teachers]

    def to(self, device: str) -> None:
        super().to(device)
        self.tokenizer.device = device

    def read(self, texts: Texts) -> Inputs:
        return self.tokenizer.read(texts, self.family.pieces)

    def read_parts(self, texts: Texts) -> tuple[list[Inputs], Tensor]:
        return self.tokenizer.read_parts(texts, self.family.pieces)

    def batch(self, draws: Sequence[Draw], rng: random.Random) -> PairBatch:
        batch = super().batch(draws, rng)
        batch.teacher_inputs = [
            (batch.parts, batch.inverse) if alike else teacher.tokenizer.read_parts(batch.texts, self.family.pieces)
            for teacher, alike in zip(self.teachers, self._reads_alike, strict=True)
        ]
        return batch

    def loss(self, batch: PairBatch) -> Tensor:
        scores = self.scores(batch)  # (lists, 1 + negatives)
        value = listwise(scores, batch.answers, batch.left_out)
        if batch.teacher_inputs:
            lists = len(batch.answers)
            with torch.no_grad():
                teacher_scores = [
                    score_parts(teacher.model, parts, inverse, lists, self.limit)
                    for teacher, (parts, inverse) in zip(self.teachers, batch.teacher_inputs, strict=True)
                ]
            value = self.family.label_weight * value + distillation(scores, torch.stack(teacher_scores).mean(0))
        return value

    def save_weights(self, folder: Path) -> None:
        self.model.classifier.save_pretrained(folder)
        self.tokenizer.base_tokenizer.save(str(folder / "tokenizer.json"))

    def manifest(self) -> Mapping[str, Any]:
        return {"kind": "ranker", "pieces": min(self.family.pieces, self.tokenizer.longest)}

    def export(self, folder: Path) -> None:
        names = self.tokenizer.names
        export(CrossEncoderForExport(self.model, names), *piece_example(names, "texts"), folder)

    def load_export(self, folder: Path, suffix: str) -> nn.Module:
        return Exported(folder / f"model{suffix}", self.tokenizer.names)


def load_teacher(folder: str, device: str, limit: int = 0) -> CrossObjective:
    """Load a cross-encoder that capr trained, as a teacher.

    Raises:
        CaprError: the folder has no such model.
    """
    weights = Path(folder) / KEPT
    if not weights.is_dir():
        weights = Path(folder)
    if not (weights / "config.json").is_file() or not (Path(folder) / "manifest.json").is_file():
        raise lacking(Path(folder), "teacher", KEPT, "name the folder of a ranker trained by capr train cross")
    classifier = load_classifier(str(weights))
    tokenizer = PieceTokenizer(load_tokenizer(str(weights)), classifier, device)
    pieces = json.loads((Path(folder) / "manifest.json").read_text("utf-8"))["pieces"]
    model = CrossEncoder(classifier).to(device).eval()
    return CrossObjective(Cross(base=str(weights), pieces=pieces), model, TrainingPairs([], []), tokenizer, limit)

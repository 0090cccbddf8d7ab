"""Trains a ranking family from pairs to a finished folder."""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from capr.documents.quantity import quantity
from capr.models.family import Schedule
from capr.models.ranking import CandidateList, Ranking, RankingObjective, validation_scores
from capr.supervise.pairs import Draw, TrainingPairs
from capr.train import loop
from capr.train.finish import CardFacts, TrainedObjective, begin, check_share, finish, too_few
from capr.train.loop import Progress, TrainingTask, no_progress, shard
from capr.train.parallel import rank

FEWEST = 8  # passages to train on
LISTS = 500  # validation queries
CHECKED, CANDIDATES = 50, 24  # lists, and passages of each, that check the exported network


def train(
    pairs: TrainingPairs,
    family: Ranking,
    schedule: Schedule,
    out: Path,
    resume: bool = False,
    progress: Progress = no_progress,
    onnx: bool = True,
) -> dict[str, float]:
    """Train, validate, export and describe a model, and return its scores on the validation split.

    Args:
        pairs: passages with queries.
        family: the family with its settings.
        schedule: the length and the learning rate of the training.
        out: the output folder.
        resume: whether to continue from the checkpoint, if there is one with the same settings.
        progress: a function that is called after each step.
        onnx: whether to export the model. A base for further training, or a teacher, needs no export.

    Raises:
        CaprError: there is too little to learn from, the base cannot be used, or training went wrong.
    """
    train_pairs, held_pairs = split(pairs, family, schedule)
    lists = list(held_pairs.lists(64, LISTS, schedule.seed))
    torch.manual_seed(schedule.seed)
    objective = family.objective(train_pairs, schedule.device, schedule.limit)
    schedule = replace(schedule, batch=min(schedule.batch, len(train_pairs.by_passage())))
    begin(out, resume, "projection.npy")
    base_weights = copy.deepcopy(objective.model.state_dict()) if family.blend else {}
    scores = fit(objective, schedule, (held_pairs, lists), out, resume, progress)
    if family.blend:
        blend(objective.model, base_weights, family.blend)
        scores = validation_scores(objective, held_pairs, lists)
    if rank():
        return scores  # the first process writes the model
    data = {
        "documents": len({text.document for text in pairs.passages}),
        "passages": len(pairs.passages),
        "draws": len(pairs.draws),
        "validation queries": len(lists),
        **objective.data,
    }
    settings = {**family.settings(), **asdict(schedule)}
    facts = CardFacts(family.name or out.name, family.kind, data, family.licence, settings, scores)
    onnx = onnx and not family.with_context  # ONNX cannot express how a Longformer pads, so torch alone runs it
    return finish(TrainedRanker(objective, held_pairs, lists), out, facts, onnx)


def split(pairs: TrainingPairs, family: Ranking, schedule: Schedule) -> tuple[TrainingPairs, TrainingPairs]:
    """Return the pairs to train on, and those to validate with.

    Raises:
        CaprError: there are too few of them.
    """
    train_pairs, held_pairs = pairs.split(family.validation, schedule.seed)
    if len(train_pairs.passages) < FEWEST or not held_pairs.draws:
        raise too_few(quantity(len(train_pairs.passages), "passage"), f"{len(held_pairs.draws)} queries")
    return train_pairs, held_pairs


def fit(
    objective: RankingObjective,
    schedule: Schedule,
    validation: tuple[TrainingPairs, Sequence[CandidateList]] | None,
    folder: Path | None = None,
    resume: bool = False,
    progress: Progress = no_progress,
) -> dict[str, float]:
    """Train the model of an objective, load the weights of its best validation, and return their scores.

    Args:
        objective: the model with its training data.
        schedule: the length and the learning rate of the training.
        validation: passages and lists to rank; None to train without validation.
        folder: the folder of the checkpoint; None for no checkpoint.
        resume: whether to continue from the checkpoint, if there is one with the same settings.
        progress: a function that is called after each step.

    Raises:
        CaprError: the loss is not finite, or the GPU has no memory left. The checkpoint stays.
    """
    return loop.fit(RankingTask(objective, schedule, validation), schedule, folder, resume, progress)


class RankingTask(TrainingTask):
    """The task of learning to rank. An epoch has one query for every passage."""

    smaller = ", fewer --negatives or shorter --pieces"

    def __init__(
        self,
        objective: RankingObjective,
        schedule: Schedule,
        validation: tuple[TrainingPairs, Sequence[CandidateList]] | None,
    ) -> None:
        self.objective, self.schedule, self.validation = objective, schedule, validation
        self.stage = objective.family.kind
        self.model, self.groups = objective.model, objective.pairs.by_passage()
        self.epoch_steps = max(1, len(self.groups) // schedule.batch)

    def batch(self, step: int) -> Any:
        schedule = self.schedule
        epoch, position = divmod(step, self.epoch_steps)
        order = self._order(epoch)[position * schedule.batch : (position + 1) * schedule.batch]
        rng = random.Random(f"{schedule.seed} {step}")
        draws: Sequence[Draw] = shard([rng.choice(self.groups[i]) for i in order])
        return self.objective.batch(draws, random.Random(f"{schedule.seed} {step} {rank()}"))

    def loss(self, batch: Any) -> Tensor:
        return self.objective.loss(batch)

    def validate(self) -> dict[str, float] | None:
        return None if self.validation is None else validation_scores(self.objective, *self.validation)

    def settings(self) -> dict[str, Any]:
        attributes = {name: value for name, value in vars(self.model).items() if isinstance(value, str | float)}
        return {"passages": len(self.groups), "model": repr(self.model), **attributes}

    def data_digest(self) -> str:
        return self.objective.pairs.digest()

    def _order(self, epoch: int) -> list[int]:
        order = list(range(len(self.groups)))
        random.Random(f"{self.schedule.seed} epoch {epoch}").shuffle(order)
        return order


class TrainedRanker(TrainedObjective):
    """The trained ranker, with lists of the validation split for the check of the export."""

    objective: RankingObjective

    def __init__(self, objective: RankingObjective, pairs: TrainingPairs, lists: Sequence[CandidateList]) -> None:
        super().__init__(objective)
        self.pairs = pairs
        self.lists = [(query, candidates[:CANDIDATES], answers) for query, candidates, answers in lists[:CHECKED]]

    def check(self, folder: Path) -> dict[str, float]:
        return check(self.objective, folder, self.pairs, self.lists)


def check(
    objective: RankingObjective, out: Path, pairs: TrainingPairs, lists: Sequence[CandidateList]
) -> dict[str, float]:
    """Return how often the exported networks put the same passage first as torch, in 32 and in 8 bits.

    Raises:
        CaprError: in 32 bits they do not agree, so the export is wrong.
    """
    model = objective.model.float().eval()
    objective.to("cpu")
    expected = objective.score_lists(pairs, lists, "text")
    firsts = [max(range(len(scores)), key=scores.__getitem__) for scores in expected]
    shares = {}
    for bits, suffix in (("32 bits", ".fp32.onnx"), ("8 bits", ".onnx")):
        objective.model = objective.load_export(out, suffix)
        exported = objective.score_lists(pairs, lists, "text")
        objective.model = model
        # The minimum score that ties with the best one.
        ties = [max(scores) - 1e-4 * max(1.0, abs(max(scores))) for scores in exported]
        same = sum(scores[first] >= tie for first, scores, tie in zip(firsts, exported, ties, strict=True))
        shares[f"first as torch, {bits}"] = same / len(lists)
    check_share(shares["first as torch, 32 bits"], "model puts another passage first in {} of the lists", out)
    return shares


def blend(model: nn.Module, base_weights: Mapping[str, Tensor], share: float) -> None:
    """Interpolate between the weights of a model and of its base.

    Args:
        model: the trained model.
        base_weights: the weights before training.
        share: the share of the base in the result.

    Reference: Wortsman et al., Robust fine-tuning of zero-shot models (WiSE-FT), 2022.
    """
    blended = {
        name: torch.lerp(weight, base_weights[name].to(weight), share) if weight.is_floating_point() else weight
        for name, weight in model.state_dict().items()
    }
    model.load_state_dict(blended)

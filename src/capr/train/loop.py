"""The loop: steps, learning rate, checkpoints, validation, early stopping; on one device or, with torchrun, several."""

from __future__ import annotations

import copy
import math
import os
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_all_start_methods
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.utils.data import DataLoader, Dataset

from capr.documents import CaprError
from capr.train.objectives import Batch, List, Objective, autocast, validated
from capr.train.pairs import Draw, Pairs
from capr.train.schedule import warm_up_then_decay

CHECKPOINT = "checkpoint.pt"
SPIKE = 20  # steps in a row without a finite loss, after which there is no hope


@dataclass(frozen=True)
class Schedule:
    """How long and how fast.

    Attributes:
        epochs: how often each passage is drawn.
        batch: queries in a step.
        learning_rate: the highest.
        warmup: the share of the steps in which it rises.
        patience: validations without improvement after which training stops; 0 for never.
        validations: in each epoch.
        seed: of everything that is drawn.
        device: `cuda` or `cpu`.
    """

    epochs: int = 5
    batch: int = 64
    learning_rate: float = 4e-5
    warmup: float = 0.1
    patience: int = 3
    validations: int = 1
    seed: int = 1
    device: str = field(default_factory=lambda: "cuda" if torch.cuda.is_available() else "cpu")


@dataclass(frozen=True)
class Report:
    """What is told after a step; `scores` after a validation."""

    step: int
    steps: int
    loss: float
    scores: Mapping[str, float] | None = None


def fit(
    objective: Objective,
    schedule: Schedule,
    validation: tuple[Pairs, Sequence[List]] | None,
    folder: Path | None = None,
    resume: bool = False,
    progress: Callable[[Report], None] = lambda report: None,
) -> dict[str, float]:
    """Teaches the objective's model, which afterwards has the weights of the best validation, and gives its scores.

    Args:
        objective: the model and what it learns from.
        schedule: how long and how fast.
        validation: passages and lists to rank; None to train to the end.
        folder: for the checkpoint; None for none.
        resume: goes on from the checkpoint, if there is one of the same settings.
        progress: is told how it goes.

    Raises:
        CaprError: the loss is not a number any more, or the GPU has no memory left; the checkpoint is kept.
    """
    return _Fit(objective, schedule, validation, folder, progress).run(resume)


class Loop(ABC):
    """One run: what is learned, and how well, is for a subclass to say.

    Args:
        model: that learns.
        epoch_steps: steps in an epoch.
        schedule: how long and how fast.
        folder: for the checkpoint; None for none.
        progress: is told how it goes.
    """

    smaller = ""  # what else, besides a batch, can be made smaller where memory is short
    workers = 0  # processes that make batches, which may not touch the device then; 0 for a thread of this one

    def __init__(
        self, model: nn.Module, epoch_steps: int, schedule: Schedule, folder: Path | None,
        progress: Callable[[Report], None],
    ) -> None:  # fmt: skip
        self.schedule, self.progress, self.folder = schedule, progress, folder
        self.rank, self.ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        self.model = model.to(schedule.device).train()
        self.epoch_steps = epoch_steps
        self.steps = schedule.epochs * self.epoch_steps
        decayed = [p for p in self.model.parameters() if p.ndim > 1]
        others = [p for p in self.model.parameters() if p.ndim <= 1]
        self.optimizer = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}],
            schedule.learning_rate,
        )
        rate = warm_up_then_decay(self.steps, schedule.warmup)
        self.rate = torch.optim.lr_scheduler.LambdaLR(self.optimizer, rate)
        half = schedule.device == "cuda" and not torch.cuda.is_bf16_supported()
        self.scaler = torch.amp.GradScaler(enabled=half)
        self.best: dict[str, float] = {}
        self.best_weights: dict[str, Any] | None = None
        self.step = self.worse = 0

    @abstractmethod
    def made(self, step: int) -> Any:
        """The batch of a step; the same whenever it is asked for."""

    @abstractmethod
    def loss(self, batch: Any) -> Tensor: ...

    @abstractmethod
    def scored(self) -> dict[str, float] | None:
        """How well the model does, the measures that decide first; None to train to the end."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What has to be the same to go on; how fast and in how large steps may change."""

    def run(self, resume: bool) -> dict[str, float]:
        torch.manual_seed(self.schedule.seed)
        if resume:
            self._load()
        every = max(1, self.epoch_steps // self.schedule.validations)
        lost = 0
        for batch in self._batches(self.step):
            if self.schedule.patience and self.worse >= self.schedule.patience:
                break  # as the run before had found
            value = self._step(batch)
            lost = 0 if math.isfinite(value) else lost + 1
            if lost >= SPIKE or (lost and not self.scaler.is_enabled()):
                fix = "go on with --resume and a lower --learning-rate"
                raise CaprError(f"the loss became {value} in step {self.step:,}; {self._kept()}. Fix: {fix}.")
            if self.step % every == 0 or self.step == self.steps:
                scores = self._validate()
                self._save()
                self.progress(Report(self.step, self.steps, value, scores))
                if self.schedule.patience and self.worse >= self.schedule.patience:
                    break
            elif self.step % 10 == 0:
                self.progress(Report(self.step, self.steps, value))
        if self.best_weights is not None:
            self.model.load_state_dict(self.best_weights)
        self.model.eval()
        return self.best

    def _step(self, batch: Any) -> float:
        torch.manual_seed(hash((self.schedule.seed, self.step, self.rank)) % 2**31)  # resumed, it drops out the same
        try:
            with autocast(self.schedule.device):
                loss = self.loss(batch)
            self.scaler.scale(loss).backward()
        except torch.OutOfMemoryError as error:
            fix = f"--resume with a smaller --batch than {self.schedule.batch}{self.smaller}"
            raise CaprError(
                f"the GPU has no memory left in step {self.step + 1:,}; {self._kept()}. Fix: {fix}."
            ) from error
        value = loss.item()
        if self.ranks > 1:
            for parameter in self.model.parameters():
                if parameter.grad is not None:
                    distributed.all_reduce(parameter.grad)
                    parameter.grad /= self.ranks
        self.scaler.unscale_(self.optimizer)
        norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0))
        if self.scaler.is_enabled():
            self.scaler.step(self.optimizer)  # which leaves out what is not finite, and scales less
            self.scaler.update()
            self.rate.step()
        elif math.isfinite(norm):
            self.optimizer.step()
            self.rate.step()
        elif math.isfinite(value):
            value = math.nan  # the gradient is none; the weights are as they were
        self.optimizer.zero_grad()
        self.step += 1
        return value

    def _batches(self, start: int) -> Iterator[Any]:
        """From a step on, each prepared while the one before is learned."""
        if self.workers and "fork" in get_all_start_methods():
            steps = _Steps(self.made, range(start, self.steps))
            yield from DataLoader(
                steps, batch_size=None, num_workers=self.workers, collate_fn=_as_it_is, multiprocessing_context="fork"
            )
            return
        with ThreadPoolExecutor(1) as threads:
            ahead = [threads.submit(self.made, step) for step in range(start, min(start + 2, self.steps))]
            for step in range(start, self.steps):
                batch = ahead.pop(0).result()
                if step + 2 < self.steps:
                    ahead.append(threads.submit(self.made, step + 2))
                yield batch

    def _validate(self) -> dict[str, float] | None:
        scores = self.scored()
        if scores is None:
            return None
        deciding = list(scores)[:2]
        if [scores[name] for name in deciding] > [self.best.get(name, -1) for name in deciding]:
            self.best, self.worse = scores, 0
            self.best_weights = copy.deepcopy(self.model.state_dict())
        else:
            self.worse += 1
        return scores

    def _save(self) -> None:
        if self.folder is None or self.rank:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.folder / f"{CHECKPOINT}.part"
        kept = {
            "settings": self.settings(), "step": self.step, "steps": self.steps, "worse": self.worse,
            "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
            "best": self.best, "best_weights": self.best_weights,
        }  # fmt: skip
        torch.save(kept, part)
        part.replace(self.folder / CHECKPOINT)

    def _load(self) -> None:
        path = (self.folder or Path()) / CHECKPOINT
        if self.folder is None or not path.is_file():
            return
        try:
            kept = torch.load(path, map_location=self.schedule.device, weights_only=True)
        except Exception as error:  # of a file that was cut off or changed
            fix = "start anew without --resume"
            raise CaprError(f"{path} is damaged ({type(error).__name__}). Fix: {fix}.") from error
        if kept["settings"] != self.settings():
            fix = "use the same settings and documents, or start anew without --resume"
            raise CaprError(f"{path} is of a run with other settings. Fix: {fix}.")
        self.model.load_state_dict(kept["model"])
        self.optimizer.load_state_dict(kept["optimizer"])
        self.step = min(self.steps, round(kept["step"] * self.steps / kept["steps"]))
        self.rate.load_state_dict({**self.rate.state_dict(), "last_epoch": self.step, "_step_count": self.step + 1})
        for group in self.optimizer.param_groups:
            group["initial_lr"] = self.schedule.learning_rate
            group["lr"] = self.schedule.learning_rate * self.rate.lr_lambdas[0](self.step)
        self.worse, self.best, self.best_weights = kept["worse"], kept["best"], kept["best_weights"]

    def _kept(self) -> str:
        path = (self.folder or Path()) / CHECKPOINT
        return f"the last checkpoint is {path}" if self.folder and path.is_file() else "there is no checkpoint yet"


class _Steps(Dataset[Any]):
    """What is made for each step."""

    def __init__(self, made: Callable[[int], Any], steps: range) -> None:
        self._made, self._steps = made, steps

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, place: int) -> Any:
        return self._made(self._steps[place])


def _as_it_is(batch: Any) -> Any:
    return batch


class _Fit(Loop):
    """A run of a bi-, poly- or cross-encoder."""

    smaller = ", fewer --negatives or shorter --pieces"

    def __init__(
        self, objective: Objective, schedule: Schedule, validation: tuple[Pairs, Sequence[List]] | None,
        folder: Path | None, progress: Callable[[Report], None],
    ) -> None:  # fmt: skip
        self.objective, self.validation = objective, validation
        self.groups = objective.pairs.by_passage()
        super().__init__(objective.model, max(1, len(self.groups) // schedule.batch), schedule, folder, progress)

    def made(self, step: int) -> Batch:
        schedule = self.schedule
        epoch, place = divmod(step, self.epoch_steps)
        order = self._order(epoch)[place * schedule.batch : (place + 1) * schedule.batch]
        draw = random.Random(f"{schedule.seed} {step}")
        chosen: list[Draw] = [draw.choice(self.groups[i]) for i in order][self.rank :: self.ranks]
        return self.objective.batch(chosen, random.Random(f"{schedule.seed} {step} {self.rank}"))

    def loss(self, batch: Batch) -> Tensor:
        return self.objective.loss(batch)

    def scored(self) -> dict[str, float] | None:
        return None if self.validation is None else validated(self.objective, *self.validation)

    def settings(self) -> dict[str, Any]:
        simple = {name: value for name, value in vars(self.model).items() if isinstance(value, str | float)}
        return {"seed": self.schedule.seed, "passages": len(self.groups), "model": repr(self.model), **simple}

    def _order(self, epoch: int) -> list[int]:
        order = list(range(len(self.groups)))
        random.Random(f"{self.schedule.seed} epoch {epoch}").shuffle(order)
        return order

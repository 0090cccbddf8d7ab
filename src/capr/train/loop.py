"""The training loop: steps, learning rate, checkpoints, validation and early stopping, on one or several devices.

`fit` trains every model by its `TrainingTask`. The random choices of a step depend only on the seed and the step, so
an interrupted and resumed run ends with the same weights. torchrun starts the processes for several devices.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import get_all_start_methods
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.utils.data import DataLoader, Dataset

from capr.documents import CaprError
from capr.models.family import Schedule
from capr.models.memory import return_freed_memory
from capr.models.precision import autocast
from capr.train.parallel import rank, world_size
from capr.train.schedule import Rate, warm_up_then_decay

CHECKPOINT = "checkpoint.pt"
MAX_SKIPPED = 20  # consecutive steps without a finite loss that end the run


@dataclass(frozen=True)
class TrainingStatus:
    """The state of a run after a step: its loss, the scores of a validation, and the stage."""

    step: int
    steps: int
    loss: float | None
    scores: Mapping[str, float] | None = None
    stage: str = ""


Progress = Callable[[TrainingStatus], None]


def no_progress(report: TrainingStatus) -> None:
    """Report nothing."""


class TrainingTask(ABC):
    """A training task: a model with its batches, loss and validation.

    Attributes:
        model: all networks with trained weights.
        epoch_steps: number of steps per epoch.
        stage: the name of the run, if a training has several runs.
        deciding: the measures that compare validations, the most important first. Default: the first two.
        average: decay of the running average of the weights; 0 for no average. If there is an average, the loop
            validates it, and the trained model has it.
        smaller: the end of a message: settings, besides the batch size, that reduce memory.
        remedy: a message that says what to do if the loss is not finite.
        workers: number of processes that make batches. Their batches must stay on the CPU. With 0, a thread makes them.
    """

    model: nn.Module
    epoch_steps: int
    stage = ""
    deciding: tuple[str, ...] = ()
    average = 0.0
    smaller = ""
    remedy = "continue with --resume and a lower --learning-rate"
    workers = 0

    @abstractmethod
    def batch(self, step: int) -> Any:
        """Return the batch of a step: always the same for the same step."""

    @abstractmethod
    def loss(self, batch: Any) -> Tensor:
        """Return the loss of a batch."""

    def validate(self) -> dict[str, float] | None:
        """Return the scores of a validation, or None to train without validation."""
        return None

    def settings(self) -> dict[str, Any]:
        """Return the settings that must not change when a run is resumed. Learning rate and batch size may change."""
        return {"model": repr(self.model)}

    def data_digest(self) -> str:
        """Return the digest of the training data, which must not change when a run is resumed; empty for no check."""
        return ""

    def optimizer(self, rate: float) -> torch.optim.Optimizer:
        """Return the optimizer. Default: AdamW with weight decay for matrices, but not for biases and norms."""
        matrices = [p for p in self.model.parameters() if p.ndim > 1]
        vectors = [p for p in self.model.parameters() if p.ndim <= 1]
        return torch.optim.AdamW(
            [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}], rate
        )

    def rate(self, steps: int, warmup: float) -> Rate:
        """Return the learning rate of each step as a share of the highest."""
        return warm_up_then_decay(steps, warmup)


def shard(batch: Sequence[Any]) -> Sequence[Any]:
    """Return the part of a batch that this process handles."""
    return batch[rank() :: world_size()]


def fit(
    task: TrainingTask,
    schedule: Schedule,
    folder: Path | None = None,
    resume: bool = False,
    progress: Progress = no_progress,
) -> dict[str, float]:
    """Train the model of a task, load the weights of its best validation, and return their scores.

    Args:
        task: the training task.
        schedule: the length and the learning rate of the run.
        folder: the folder of the checkpoint; None for no checkpoint.
        resume: whether to continue from the checkpoint, if there is one with the same settings.
        progress: a function that is called after each step.

    Raises:
        CaprError: the loss is not finite, or the GPU has no memory left. The checkpoint stays.
    """
    return Loop(task, schedule, folder, progress).run(resume)


class Loop:
    """A training run."""

    def __init__(self, task: TrainingTask, schedule: Schedule, folder: Path | None, progress: Progress) -> None:
        self.task, self.schedule, self.folder, self.progress = task, schedule, folder, progress
        self.model = task.model.to(schedule.device).train()
        self.steps = schedule.epochs * task.epoch_steps
        self.optimizer = task.optimizer(schedule.learning_rate)
        self.rate = torch.optim.lr_scheduler.LambdaLR(self.optimizer, task.rate(self.steps, schedule.warmup))
        half = schedule.device == "cuda" and not torch.cuda.is_bf16_supported()
        self.scaler = torch.amp.GradScaler(enabled=half)
        self.averaged = [p.detach().clone() for p in self.model.parameters()] if task.average else []
        self.best: dict[str, float] = {}
        self.best_weights: dict[str, Any] | None = None
        self.step = self.worse = 0

    def run(self, resume: bool) -> dict[str, float]:
        if self.schedule.device == "cpu":
            return_freed_memory()
        torch.manual_seed(self.schedule.seed)
        if resume:
            self._load()
        interval = max(1, self.task.epoch_steps // self.schedule.validations)
        skipped = 0
        for batch in self._batches(self.step):
            if self.schedule.patience and self.worse >= self.schedule.patience:
                break  # a resumed run may have run out of patience before
            value = self._step(batch)
            skipped = 0 if math.isfinite(value) else skipped + 1
            if skipped >= MAX_SKIPPED or (skipped and not self.scaler.is_enabled()):
                fact = f"the loss became {value} in step {self.step:,}; {self._checkpoint_fact()}"
                raise CaprError(f"{fact}. Fix: {self.task.remedy}.")
            validates = self.step % interval == 0 or self.step == self.steps
            scores = self._validate() if validates else None
            if validates:
                self._save()
            self.progress(TrainingStatus(self.step, self.steps, value, scores, self.task.stage))
        if self.best_weights is not None:
            self.model.load_state_dict(self.best_weights)
        else:
            self._swap_average()
        self.model.eval()
        return self.best

    def _step(self, batch: Any) -> float:
        torch.manual_seed(hash((self.schedule.seed, self.step, rank())) % 2**31)  # same dropout in a resumed run
        try:
            with autocast(self.schedule.device):
                loss = self.task.loss(batch)
            self.scaler.scale(loss).backward()
        except torch.OutOfMemoryError as error:
            fix = f"--resume with a smaller --batch than {self.schedule.batch}{self.task.smaller}"
            raise CaprError(
                f"the GPU has no memory left in step {self.step + 1:,}; {self._checkpoint_fact()}. Fix: {fix}."
            ) from error
        value = loss.item()
        if world_size() > 1:
            for parameter in self.model.parameters():
                if parameter.grad is not None:
                    distributed.all_reduce(parameter.grad)
                    parameter.grad /= world_size()
        self.scaler.unscale_(self.optimizer)
        norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0))
        if self.scaler.is_enabled():
            self.scaler.step(self.optimizer)  # skips gradients that are not finite, and lowers the scale
            self.scaler.update()
            self.rate.step()
        elif math.isfinite(norm):
            self.optimizer.step()
            self.rate.step()
        elif math.isfinite(value):
            value = math.nan  # the gradient is not finite, so the weights stay
        self.optimizer.zero_grad()
        with torch.no_grad():
            for average, weight in zip(self.averaged, self.model.parameters(), strict=bool(self.averaged)):
                average.lerp_(weight, 1 - self.task.average)
        self.step += 1
        return value

    def _batches(self, start: int) -> Iterator[Any]:
        """Yield the batches from a step to the end. A batch is made during the step before."""
        if self.task.workers and "fork" in get_all_start_methods():
            steps = _Steps(self.task.batch, range(start, self.steps))
            yield from DataLoader(
                steps,
                batch_size=None,
                num_workers=self.task.workers,
                collate_fn=_identity,
                multiprocessing_context="fork",
            )
            return
        with ThreadPoolExecutor(1) as threads:
            ahead = [threads.submit(self.task.batch, step) for step in range(start, min(start + 2, self.steps))]
            for step in range(start, self.steps):
                batch = ahead.pop(0).result()
                if step + 2 < self.steps:
                    ahead.append(threads.submit(self.task.batch, step + 2))
                yield batch

    def _validate(self) -> dict[str, float] | None:
        self._swap_average()
        scores = self.task.validate()
        if scores is not None:
            deciding = self.task.deciding or tuple(scores)[:2]
            if [scores.get(name, 0) for name in deciding] > [self.best.get(name, -1) for name in deciding]:
                self.best, self.worse = scores, 0
                self.best_weights = copy.deepcopy(self.model.state_dict())
            else:
                self.worse += 1
        self._swap_average()
        self.model.train()
        return scores

    @torch.no_grad()
    def _swap_average(self) -> None:
        """Swap the weights of the model and their running average."""
        for average, weight in zip(self.averaged, self.model.parameters(), strict=bool(self.averaged)):
            before = weight.clone()
            weight.copy_(average)
            average.copy_(before)

    def _save(self) -> None:
        if self.folder is None or rank():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.folder / f"{CHECKPOINT}.part"
        checkpoint = {
            "settings": self._settings(),
            "data": self._data_digest,
            "step": self.step,
            "steps": self.steps,
            "worse": self.worse,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "averaged": self.averaged,
            "best": self.best,
            "best_weights": self.best_weights,
        }
        torch.save(checkpoint, part)
        part.replace(self.folder / CHECKPOINT)

    def _settings(self) -> dict[str, Any]:
        return {"seed": self.schedule.seed, **self.task.settings()}

    @cached_property
    def _data_digest(self) -> str:
        return self.task.data_digest()

    def _load(self) -> None:
        path = (self.folder or Path()) / CHECKPOINT
        if self.folder is None or not path.is_file():
            return
        try:
            checkpoint = torch.load(path, map_location=self.schedule.device, weights_only=True)
        except Exception as error:  # torch raises many classes for a damaged file
            fix = "delete it, and start again without --resume"
            raise CaprError(f"{path} is damaged ({type(error).__name__}). Fix: {fix}.") from error
        if checkpoint["settings"] != self._settings():
            fix = "use the same settings and documents, or delete it and start again without --resume"
            raise CaprError(f"{path} belongs to a run with other settings. Fix: {fix}.")
        if checkpoint.get("data", self._data_digest) != self._data_digest:  # older versions saved none
            fix = "name the same documents and use the same --validation, or train in another folder (-o)"
            raise CaprError(f"{path} belongs to a run with other training data. Fix: {fix}.")
        if "step" not in checkpoint:
            fix = "delete it, and start again without --resume"
            raise CaprError(f"{path} was written by an older version of capr. Fix: {fix}.")
        self.model.load_state_dict(checkpoint["model"])
        self.optimizer.load_state_dict(checkpoint["optimizer"])
        self.averaged = checkpoint.get("averaged", [])  # older versions saved no average
        self.step = min(self.steps, round(checkpoint["step"] * self.steps / checkpoint["steps"]))
        self.rate.load_state_dict({**self.rate.state_dict(), "last_epoch": self.step, "_step_count": self.step + 1})
        for group in self.optimizer.param_groups:
            group["initial_lr"] = self.schedule.learning_rate
            group["lr"] = self.schedule.learning_rate * self.rate.lr_lambdas[0](self.step)
        self.worse, self.best, self.best_weights = checkpoint["worse"], checkpoint["best"], checkpoint["best_weights"]

    def _checkpoint_fact(self) -> str:
        path = (self.folder or Path()) / CHECKPOINT
        return f"the last checkpoint is {path}" if self.folder and path.is_file() else "there is no checkpoint yet"


class _Steps(Dataset[Any]):
    """The batches of a range of steps."""

    def __init__(self, make: Callable[[int], Any], steps: range) -> None:
        self._make, self._steps = make, steps

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, position: int) -> Any:
        return self._make(self._steps[position])


def _identity(batch: Any) -> Any:
    return batch

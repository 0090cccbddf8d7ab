"""Show the progress of training on stderr: bars on a terminal, otherwise a line every few seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from capr.cli.inputs import terminal

if TYPE_CHECKING:
    from capr.train.loop import Progress as Report
    from capr.train.loop import TrainingStatus

EVERY = 5.0  # seconds between lines


@contextmanager
def show_progress(shown: bool = True) -> Iterator[Report]:
    """Show the progress of training and every validation; `shown` is False in all processes but the first."""
    if not shown:
        yield lambda status: None
    elif sys.stderr.isatty():
        with _bars() as report_progress:
            yield _with_validations(report_progress)
    else:
        yield _with_validations(Lines())


def _with_validations(report_progress: Report) -> Report:
    def report_both(status: TrainingStatus) -> None:
        report_progress(status)
        if status.scores:
            scores = ", ".join(f"{name} {100 * value:.1f}" for name, value in status.scores.items())
            stage = f"{status.stage}, " if status.stage else ""
            print(f"{stage}step {status.step:,} of {status.steps:,}: validation {scores}", file=sys.stderr, flush=True)

    return report_both


@contextmanager
def _bars() -> Iterator[Report]:
    """Show a bar for each stage, with the loss and the time left."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,} of {task.total:,} steps{task.fields[loss]} "),
        TimeRemainingColumn(),
    )
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=terminal(stderr=True)) as progress:

        def report_progress(status: TrainingStatus) -> None:
            if status.stage not in tasks:
                tasks[status.stage] = progress.add_task(status.stage, total=status.steps, loss="")
            progress.update(tasks[status.stage], completed=status.step, loss=_format_loss(status))

        yield report_progress


class Lines:
    """Prints lines such as `tagger, step 40 of 1,200, loss 0.312, 4 min left`.

    It prints the first and the last step of a stage, and steps between them at most once in `every` seconds.
    """

    def __init__(self, every: float = EVERY) -> None:
        self.every = every
        self._starts: dict[str, tuple[float, int]] = {}  # the time and the step of the first report of each stage
        self._last = 0.0

    def __call__(self, status: TrainingStatus) -> None:
        now = time.monotonic()
        first = status.stage not in self._starts
        start, first_step = self._starts.setdefault(status.stage, (now, status.step))
        if not first and status.step < status.steps and now - self._last < self.every:
            return
        self._last = now
        steps_done = status.step - first_step
        time_left = (
            f", {_format_time((now - start) / steps_done * (status.steps - status.step))} left" if steps_done else ""
        )
        stage = f"{status.stage}, " if status.stage else ""
        line = f"{stage}step {status.step:,} of {status.steps:,}{_format_loss(status)}{time_left}"
        print(line, file=sys.stderr, flush=True)


def _format_loss(status: TrainingStatus) -> str:
    return "" if status.loss is None else f", loss {status.loss:.3f}"


def _format_time(seconds: float) -> str:
    """Format a time: `40 s`, `12 min`, `2 h 5 min`."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"

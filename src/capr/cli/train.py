"""`capr train FAMILY`: train a model. Every family has a command, with the options of the family and of its source."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import Signature, cleandoc
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from capr.cli.options import field_parameters, parameters, parse_settings
from capr.cli.sources import source
from capr.cli.sources.documents import ORIGIN
from capr.cli.training_progress import show_progress
from capr.documents import CaprError
from capr.models.families import FAMILIES, family


def command(name: str) -> Any:
    """Return the command of a family, with the options of its source, its settings and its schedule."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(name)(_make_function(name))
    return typer.main.get_command(app)


def _make_function(name: str) -> Callable[..., None]:
    kind = family(name)
    source_type = source(kind.learns_from)
    source_options, family_options = parameters(source_type), field_parameters(kind)
    schedule_options = field_parameters(type(kind.schedule), kind.schedule, kind.offered)
    source_names = {parameter.name for parameter in source_options}

    def run(**arguments: Any) -> None:
        settings = kind(**parse_settings(kind, {option.name: arguments.pop(option.name) for option in family_options}))
        schedule_values = {option.name: arguments.pop(option.name) for option in schedule_options}
        schedule = settings.scheduled(parse_settings(type(kind.schedule), schedule_values))
        _train(settings, schedule, source_type(**arguments))

    run.__doc__ = cleandoc(kind.__doc__ or "").partition("\n\nAttributes:")[0]
    options = [
        *source_options,
        *(option for option in (*family_options, *schedule_options) if option.name not in source_names),
    ]
    run.__signature__ = Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


def _train(settings: Any, schedule: Any, training_source: Any) -> None:
    from capr.train.finish import check_unfinished, is_finished
    from capr.train.parallel import parallel, rank, wait_for_all

    if (output := getattr(training_source, "output", None)) is not None:  # a source may write no model
        resume = getattr(training_source, "resume", False)
        if resume and is_finished(output):
            if not rank():
                print(f"{output} has a finished model, so there is nothing to resume.")
            return
        check_unfinished(output, resume)
    if not training_source.parallel and int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise CaprError("only one process can train such a model. Fix: start it without torchrun.")
    with parallel() as is_first, _interruptible(training_source, is_first):
        if not is_first:
            wait_for_all()
        data = training_source.load(settings, schedule, is_first)
        if is_first:
            wait_for_all()
        with show_progress(is_first) as progress:
            scores = training_source.train(data, settings, schedule, progress)
    if is_first:
        if output is not None:
            (output / ORIGIN).unlink(missing_ok=True)  # only a resumed run reads it
        print(training_source.summary(scores))


@contextmanager
def _interruptible(training_source: Any, is_first: bool) -> Iterator[None]:
    """Say on Ctrl-C how to continue; only the first of several processes says so."""
    start = time.time()
    try:
        yield
    except KeyboardInterrupt:
        if is_first:
            print(_format_interruption(training_source, start), file=sys.stderr, flush=True)
        raise


def _format_interruption(training_source: Any, start: float) -> str:
    """Format what an interrupted run, which began at `start`, left behind, and how to continue."""
    from capr.train.loop import CHECKPOINT

    if not hasattr(training_source, "resume"):  # a tagger
        return "Training stopped. The same command continues from the last checkpoint, if there is one."
    checkpoints = [
        path
        for path in Path(training_source.output).rglob(CHECKPOINT)
        if training_source.resume or path.stat().st_mtime >= start  # an older one belongs to another run
    ]
    if not checkpoints:
        return "Training stopped before its first checkpoint. The same command starts again."
    last = max(checkpoints, key=lambda path: path.stat().st_mtime)
    return f"Training stopped. The same command with --resume continues from {last}."


class Commands(Mapping[str, Any]):
    """The commands, by name. Each is made on access, because loading a family needs torch."""

    def __getitem__(self, name: str) -> Any:
        if name not in FAMILIES:
            raise KeyError(name)
        return command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(FAMILIES)

    def __len__(self) -> int:
        return len(FAMILIES)


class Families(TyperGroup):
    """The group `capr train`, which lists the families without loading them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands: Any = Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        return list(FAMILIES)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in FAMILIES.items()])

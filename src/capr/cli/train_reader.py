"""`capr train reader`: teach a network to read the words that answer a question out of a paragraph."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import capr
from capr.cli import inputs
from capr.cli.train_retrieval import Base, Device, LearningRate, Licence, Patience, Resume, Seed, one_of
from capr.documents import CaprError

if TYPE_CHECKING:
    from capr.train.loop import Report
    from capr.train.questions import Source


def command(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE[=WEIGHT]...",
            help="Reports with questions: SQuAD's or emrQA's JSON; how often each question is drawn in an epoch, 1 "
            "if not given.",
        ),
    ],
    base: Base,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="The reader.")],
    texts: Annotated[
        list[str] | None,
        typer.Option("--texts", metavar="FILE", help="Plain documents, whose recurring terms become questions, too."),
    ] = None,
    layers: Annotated[int, typer.Option("--layers", min=0, help="Layers of the base to keep; 0 for all.")] = 0,
    teacher: Annotated[
        str, typer.Option("--teacher", metavar="FOLDER", help="A reader whose opinions are learned, too.")
    ] = "",
    hard: Annotated[
        float, typer.Option("--hard", min=0, help="How much the answers count beside a teacher's opinion.")
    ] = 0.5,
    length: Annotated[
        int, typer.Option("--length", min=3, help="Characters of a paragraph; drawn from a third to five thirds of it.")
    ] = 900,
    unanswerable: Annotated[
        float, typer.Option("--unanswerable", min=0, max=1, help="Share of the questions without an answer to draw.")
    ] = 1.0,
    alike: Annotated[
        float,
        typer.Option("--alike", min=0, max=1, help="How often the other paragraph is the one most like the question."),
    ] = 0.0,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="How often each question is drawn.")] = 3,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Questions in a step, each with a paragraph.")] = 16,
    learning_rate: LearningRate = 5e-5,
    validation: Annotated[
        float, typer.Option("--validation", min=0, max=1, help="Share of the reports to validate and calibrate on.")
    ] = 0.05,
    patience: Patience = 3,
    seed: Seed = 1,
    device: Device = None,
    resume: Resume = False,
    licence: Licence = "",
) -> None:
    """Train a reader from reports with questions: it marks the words that answer, or says that there are none.

    Reports are cut into paragraphs. Each question is learned with a paragraph that answers it and one of the same
    report that does not. Some of the reports are kept to validate on and to calibrate the confidence with. Interrupted,
    the same command with --resume goes on. Needs the extra `train`.

    Example: capr train reader squad.json notes.json=2 --base ms-marco-MiniLM-L-12-v2 -o reader
    """
    try:
        from capr.train.loop import Schedule
        from capr.train.parallel import parallel
        from capr.train.reader import Recipe, train
    except ImportError as error:
        fix = "pip install 'capr[train]'"
        raise CaprError(f"training needs {error.name}, which is not installed. Fix: {fix}.") from error
    if device is not None:
        one_of("--device", device, ("cuda", "cpu"))
    recipe = Recipe(
        base, layers, teacher, hard, lengths=(length // 3, 5 * length // 3), unanswerable=unanswerable,
        alike=alike, validation=validation, licence=licence,
    )  # fmt: skip
    schedule = Schedule(epochs, batch, learning_rate, patience=patience, seed=seed)
    if device:
        schedule = replace(schedule, device=device)
    sources = [_source(given) for given in files] + _spans(texts or [], seed)
    with parallel() as first, inputs.steps() as told:

        def progress(report: Report) -> None:
            told("reader", report.step, report.steps, report.loss)
            if report.scores and first:
                shown = ", ".join(f"{name} {100 * value:.1f}" for name, value in report.scores.items())
                print(f"step {report.step:,} of {report.steps:,}: validation {shown}", file=sys.stderr)

        scores = train(sources, recipe, schedule, output, resume, progress)
    if first:
        shown = ", ".join(f"{name} {100 * scores[name]:.1f} %" for name in ("F1", "EM", "answered", "refused"))
        print(f"{output}: {shown}")


def _source(given: str) -> Source:
    """The reports of a file, and how often their questions are drawn: `FILE` or `FILE=2`."""
    from capr.supervise.reports import reports
    from capr.train.questions import Source

    name, equals, number = given.rpartition("=")
    path, weight = Path(given), 1.0
    if equals and not path.exists():
        try:
            path, weight = Path(name), float(number)
            if not 0 < weight < 1000:
                raise ValueError(number)
        except ValueError as error:
            fix = "write FILE=2 to draw each question twice in an epoch"
            raise CaprError(f"{given!r} names no file and no weight. Fix: {fix}.") from error
    found = list(reports(inputs.Documents([str(path)], "squad", None, False, False).documents()))
    if not any(report.questions for report in found):
        raise CaprError(f"{path} has no questions. Fix: name a file in SQuAD's or emrQA's format.")
    return Source(found, weight, name=path.name)


def _spans(files: list[str], seed: int) -> list[Source]:
    """Questions out of plain documents; none of them is validated with."""
    from capr.supervise.spans import recurring
    from capr.train.questions import Source

    if not files:
        return []
    reports = list(recurring(capr.read(files), seed=seed))
    if not reports:
        raise CaprError("in no document of --texts a term recurs. Fix: name longer documents, or leave it out.")
    return [Source(reports, held=False, name="recurring terms")]

"""Reports with questions and answers, the training data of readers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from capr.cli import inputs
from capr.cli.sources.documents import Resume, format_scores
from capr.documents import CaprError, read

if TYPE_CHECKING:
    from capr.models.family import Schedule
    from capr.models.reader import ReaderFamily
    from capr.supervise.paragraph_questions import WeightedReports
    from capr.train.loop import Progress

PRINTED_SCORES = ("F1", "EM", "answered", "refused")


@dataclass(frozen=True, kw_only=True)
class ReportSource:
    """Reports with questions, and plain documents that give questions."""

    parallel: ClassVar[bool] = True

    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE[=WEIGHT]...",
            help="Reports with questions: SQuAD's or emrQA's JSON. WEIGHT is how often an epoch draws each question; "
            "default 1.",
        ),
    ]
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="The reader.")]
    texts: Annotated[
        list[str] | None,
        typer.Option("--texts", metavar="FILE", help="Plain documents; their recurring terms also become questions."),
    ] = None
    resume: Resume = False

    def load(self, family: ReaderFamily, schedule: Schedule, first: bool) -> list[WeightedReports]:
        return [read_source(argument) for argument in self.files] + recurring_terms(self.texts or [], schedule.seed)

    def train(
        self, data: list[WeightedReports], family: ReaderFamily, schedule: Schedule, progress: Progress
    ) -> dict[str, float]:
        from capr.train.reading import train

        return train(data, family, schedule, self.output, self.resume, progress)

    def summary(self, scores: dict[str, Any]) -> str:
        return f"{self.output}: {format_scores({name: scores[name] for name in PRINTED_SCORES})}"


def read_source(argument: str) -> WeightedReports:
    """Read the reports of an argument `FILE` or `FILE=2`; the number is the weight of their questions."""
    from capr.supervise.paragraph_questions import WeightedReports
    from capr.supervise.reports import reports

    name, equals, number = argument.rpartition("=")
    path, weight = Path(argument), 1.0
    if equals and not path.exists():
        try:
            path, weight = Path(name), float(number)
            if not 0 < weight < 1000:
                raise ValueError(number)
        except ValueError as error:
            fix = "write FILE=2 to draw each question twice in an epoch"
            raise CaprError(f"{argument!r} is neither a file nor a file with a weight. Fix: {fix}.") from error
    inputs.check_questions([str(path)])
    source_reports = list(reports(inputs.Documents([str(path)], "squad", None, False, False).documents()))
    if not any(report.questions for report in source_reports):
        raise CaprError(f"{path} has no questions. Fix: name a file in SQuAD's or emrQA's format.")
    return WeightedReports(source_reports, weight, name=path.name)


def recurring_terms(files: list[str], seed: int) -> list[WeightedReports]:
    """Make questions from plain documents, which validation does not use."""
    from capr.supervise.paragraph_questions import WeightedReports
    from capr.supervise.recurring_terms import recurring_term_reports

    if not files:
        return []
    reports = list(recurring_term_reports(read(files), seed=seed))
    if not reports:
        raise CaprError("no term recurs in a document of --texts. Fix: name longer documents, or leave out --texts.")
    return [WeightedReports(reports, held=False, name="recurring terms")]

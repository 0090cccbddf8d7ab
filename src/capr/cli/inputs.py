"""What every command that reads documents shares: its options, its progress bar, and how it tells of problems."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

import capr
from capr.documents import CaprError, Document, Problem, Reading
from capr.documents.formats import BY_NAME

Files = Annotated[list[str], typer.Argument(metavar="FILE...", help="Files, folders, or - for standard input.")]
Format = Annotated[
    str | None,
    typer.Option("--format", metavar="FORMAT", help=f"Found by content and name if not given: {', '.join(BY_NAME)}."),
]
Column = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="FIELD=NAME",
        help="For tables and JSON Lines: the column that holds id, text, title, patient, date, type or source. "
        "Several for the text: text=findings+impression.",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first problem.")]
Replace = Annotated[bool, typer.Option("--replace", help="Allow an id twice; the later document wins.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON Lines instead of a table.")]

SHOWN_PROBLEMS = 20
PROGRESS_FROM = 20_000_000  # bytes; less is read before a bar could be seen


class Input:
    """A reading with its problems on stderr as they come and a progress bar for large files on a terminal."""

    def __init__(
        self, files: list[str], format: str | None, column: list[str] | None, strict: bool, replace: bool
    ) -> None:
        self.console = Console(stderr=True, soft_wrap=True, highlight=False)
        self._told = 0
        self.reading: Reading = capr.read(
            files,
            format=format,
            columns=_columns(column or []),
            strict=strict,
            replace=replace,
            on_problem=self._tell,
        )

    def documents(self) -> Iterator[Document]:
        """The documents, one at a time."""
        if not sys.stderr.isatty() or self.reading.size < PROGRESS_FROM:
            yield from self.reading
            return
        columns = (
            BarColumn(),
            TextColumn("{task.percentage:3.0f} %  {task.fields[count]:,} documents "),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self.console, transient=True) as progress:
            task = progress.add_task("", total=self.reading.size, count=0)
            for document in self.reading:
                if self.reading.documents % 100 == 0:
                    progress.update(task, completed=self.reading.position, count=self.reading.documents)
                yield document

    def finish(self) -> None:
        """Sums up the problems and leaves with the exit code that says whether there were any."""
        errors = self.reading.errors
        if errors > SHOWN_PROBLEMS:
            self.console.print(f"... and {errors - SHOWN_PROBLEMS:,} problems more.", markup=False)
        if errors:
            records = "record" if errors == 1 else "records"
            self.console.print(f"{errors:,} {records} could not be read; the rest was.", markup=False)
            raise typer.Exit(1)

    def _tell(self, problem: Problem) -> None:
        self._told += 1
        if self._told <= SHOWN_PROBLEMS:
            self.console.print(str(problem), markup=False)


def _columns(given: list[str]) -> dict[str, str]:
    columns = {}
    for pair in given:
        field, equals, name = pair.partition("=")
        if not equals or not field or not name:
            raise CaprError(f"--column {pair!r} does not name a field and its column. Fix: write --column text=NOTE.")
        columns[field] = name
    return columns

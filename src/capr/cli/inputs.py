"""What every command that reads documents shares: its options, its progress bar, and how it tells of problems."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

import capr
from capr.documents import CaprError, Document, Notice, Problem, Reading, Span
from capr.documents.formats import BY_NAME
from capr.search.fusion import Fusion as Fusion

Item = TypeVar("Item")
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
Replace = Annotated[
    bool, typer.Option("--replace", help="Allow an id twice; whoever keeps the documents keeps the later one.")
]
LibraryFolder = Annotated[Path, typer.Argument(metavar="LIBRARY", help="The folder of the library.")]


Encoder = Annotated[
    str | None,
    typer.Option(
        "--encoder", metavar="FOLDER", help="Makes the vectors, if not the one used before or that ships; or none."
    ),
]
Fused = Annotated[Fusion, typer.Option("--fusion", help="How words and vectors are joined.")]
Discourse = Annotated[
    str | None,
    typer.Option(
        "--discourse",
        metavar="FOLDER",
        help="Gives sentences vectors, for cdv search, if not the one used before; or none.",
    ),
]
Filter = Annotated[
    list[str] | None,
    typer.Option("--filter", metavar="NAME=VALUE", help="Only such documents; may be repeated."),
]
VocabularyTables = Annotated[
    list[Path] | None,
    typer.Option("--vocabulary", metavar="CSV", help="Add names of your own: code, name, synonyms."),
]
Cues = Annotated[
    bool,
    typer.Option("--cues/--no-cues", help="Label an article's passages by their words, too, not by headings alone."),
]
Without = Annotated[
    Path | None,
    typer.Option("--without", metavar="FILE", help="Entities to leave out, one name a line: those of a test."),
]
WithoutPassages = Annotated[
    Path | None,
    typer.Option(
        "--without-passages", metavar="JSONL", help="Texts to leave out wherever they stand: those of a test."
    ),
]
Aliases = Annotated[
    Path | None, typer.Option("--aliases", metavar="JSON", help="Other names of subjects: {title: [name, ...]}.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON Lines instead of a table.")]

SHOWN_PROBLEMS, SHOWN_NOTICES = 100, 5
CONTROLS = {i: chr(0x2400 + i) for i in range(32) if chr(i) not in "\t\n\r"} | {0x7F: "␡"}
CONTROLS |= dict.fromkeys(range(128, 160), "�") | {0x9B: "␛"}
FAST = 30_000_000  # bytes a second, if a command only reads them


class Documents:
    """A reading with its problems on stderr as they come and a progress bar for large files on a terminal."""

    def __init__(
        self,
        files: list[str],
        format: str | None,
        column: list[str] | None,
        strict: bool,
        replace: bool,
        speed: int = FAST,
        what: str = "read",
    ) -> None:
        """Begins to read; `speed` is how many bytes the command works through in a second: less needs no bar.

        `what` the command does with documents, or could not do.
        """
        self._what = what
        self._speed = speed
        self.console = terminal(stderr=True)
        self._notices = self._problems = 0
        self.reading: Reading = capr.read(
            files,
            format=format,
            columns=_columns(column or []),
            strict=strict,
            replace=replace,
            on_problem=self.tell,
        )

    def documents(self) -> Iterator[Document]:
        """The documents, one at a time."""
        if not sys.stderr.isatty() or self.reading.size < self._speed:
            yield from self.reading
            return
        columns = (
            BarColumn(),
            TextColumn("{task.percentage:3.0f} %  {task.fields[count]:,} documents{task.fields[rate]} "),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self.console, transient=True) as progress:
            task = progress.add_task("", total=self.reading.size, count=0, rate="")
            start = time.monotonic()
            for document in self.reading:
                if self._speed < FAST or self.reading.documents % 100 == 0:
                    count = self.reading.documents
                    rate = f" ({count / max(time.monotonic() - start, 0.1):,.0f}/s)"
                    progress.update(task, completed=self.reading.position, count=count, rate=rate)
                yield document

    def finish(self) -> None:
        """Sums up the problems and leaves with the exit code that says whether there were any."""
        errors = self._problems
        if self._notices > SHOWN_NOTICES:
            self.console.print(f"... and {self._notices - SHOWN_NOTICES:,} more notices, which lost nothing.")
        if errors > SHOWN_PROBLEMS:
            self.console.print(f"... and {errors - SHOWN_PROBLEMS:,} more problems.")
        if errors:
            self.console.print(
                f"{counted(errors, 'problem')}: what is named above could not be {self._what}; the rest was."
            )
            raise typer.Exit(1)

    def tell(self, problem: Problem) -> None:
        """Shows a problem or a notice."""
        if isinstance(problem, Notice):
            self._notices += 1
            shown = self._notices <= SHOWN_NOTICES
        else:
            self._problems += 1
            shown = self._problems <= SHOWN_PROBLEMS
        if shown:
            self.console.print(str(problem))


@contextmanager
def steps() -> Iterator[Callable[[str, int, int, float], None]]:
    """What training tells of its progress: a bar for each stage with the loss and the time left, on a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,} of {task.total:,} steps, loss {task.fields[loss]:.3f} "),
        TimeRemainingColumn(),
    )
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=terminal(stderr=True), disable=not sys.stderr.isatty()) as progress:

        def tell(stage: str, step: int, total: int, loss: float) -> None:
            if stage not in tasks:
                tasks[stage] = progress.add_task(stage, total=total, loss=loss)
            progress.update(tasks[stage], completed=step, loss=loss)

        yield tell


def counting(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    """The items, with a progress bar on a terminal."""
    columns = (BarColumn(), TextColumn(f"{{task.completed:,}} of {{task.total:,}} {what} "), TimeRemainingColumn())
    console = terminal(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("", total=total)
        for item in items:
            yield item
            progress.advance(task)


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """What long work tells of its progress, done and in all: a bar with the speed and the time left, on a terminal."""
    columns = (
        BarColumn(),
        TextColumn(f"{{task.completed:,}} of {{task.total:,}} {what} ({{task.fields[rate]}}/s) "),
        TimeRemainingColumn(),
    )
    start = time.monotonic()
    console = terminal(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as bar:
        task: TaskID | None = None

        def tell(done: int, total: int) -> None:
            nonlocal task
            if task is None:
                task = bar.add_task("", total=total, rate="")
            rate = f"{done / max(time.monotonic() - start, 0.1):,.0f}"
            bar.update(task, completed=done, total=total, rate=rate)

        yield tell


def terminal(stderr: bool = False) -> Console:
    """A console that shows texts as they are: brackets and colons in a note are no markup."""
    return Console(stderr=stderr, soft_wrap=stderr, highlight=False, markup=False, emoji=False)


def printable(text: str) -> str:
    """A text that cannot control the terminal: control characters are shown as pictures of themselves."""
    return text.translate(CONTROLS)


def indented(console: Console, text: str | Text, style: str = "", first: str = "   ") -> None:
    """Prints lines of a hit or an answer, each under the other; `first` stands before the first."""
    shown = Text(text) if isinstance(text, str) else text
    for line in shown.wrap(console, max(20, console.width - 3)):
        line.rstrip()
        if line:
            console.print(Text(first.ljust(3)) + line, style=style, no_wrap=True)
            first = ""


def range_of(span: Span) -> str:
    """A range of characters: `[12, 17)`."""
    return f"[{span.begin}, {span.end})"


def origin(metadata: Mapping[str, Any], title: str) -> str:
    """What tells a document from others: patient, date, type and title, as far as they are known."""
    told = [metadata.get(name) for name in ("patient", "date", "type")]
    return ", ".join(str(part) for part in (*told, title) if part)


def counted(count: int, noun: str) -> str:
    """`1 document`, `2 documents`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def names(path: Path | None) -> set[str]:
    """The names in a file, one a line."""
    if path is None:
        return set()
    if not path.is_file():
        raise CaprError(f"there is no {path}. Fix: name a file with one name a line.")
    return {line.strip() for line in path.read_text("utf-8").splitlines() if line.strip()}


def texts(path: Path | None) -> list[str]:
    """The texts of the documents in a file."""
    return [document.text for document in capr.read(path, strict=True)] if path else []


def aliases(path: Path | None) -> Mapping[str, Sequence[str]]:
    """Other names of subjects, by title."""
    if path is None:
        return {}
    try:
        found = json.loads(path.read_text("utf-8"))
        if not all(isinstance(names, list) for names in found.values()):
            raise ValueError("a title has no list of names")
    except (OSError, ValueError, AttributeError) as error:
        fix = 'write a JSON object: {"title": ["other name", ...]}'
        raise CaprError(f"{path} holds no other names ({error}). Fix: {fix}.") from error
    return dict(found)


def _columns(given: list[str]) -> dict[str, str]:
    columns = {}
    for pair in given:
        field, equals, name = pair.partition("=")
        if not equals or not field or not name:
            raise CaprError(f"--column {pair!r} does not name a field and its column. Fix: write --column text=NOTE.")
        if field in columns:
            raise CaprError(f"--column names the {field} twice. Fix: name it once; text=a+b joins several columns.")
        columns[field] = name
    return columns

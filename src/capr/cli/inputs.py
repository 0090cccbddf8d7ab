"""Options, progress bars and reports of problems that commands share."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from capr.documents import CaprError, Document, DocumentStream, Notice, Problem, Span, read
from capr.documents.files import Sidecars, files
from capr.documents.formats import BY_NAME
from capr.documents.quantity import quantity as quantity
from capr.index.engines import checked_location
from capr.search.fusion import Fusion as Fusion

BINARY = b"\x1f\x8b"  # how gzip files begin
Item = TypeVar("Item")
Files = Annotated[list[str], typer.Argument(metavar="FILE...", help="Files, folders, or - for standard input.")]
Format = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="FORMAT", help=f"Default: recognised by content and name. One of {', '.join(BY_NAME)}."
    ),
]
Column = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="FIELD=NAME",
        help="For tables and JSON Lines: the column with id, text, title, patient, date, type or source. "
        "The text may join several columns: text=findings+impression.",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first problem.")]
Replace = Annotated[
    bool, typer.Option("--replace", help="Allow several documents with the same id, and use the last one.")
]
LibraryLocation = Annotated[
    str,
    typer.Argument(metavar="LIBRARY", help="The folder of the library, or its address.", callback=checked_location),
]


Encoder = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        metavar="FOLDER",
        help="The encoder, or none. Default: as before in this library, or the built-in encoder.",
    ),
]
Ranker = Annotated[
    str | None, typer.Option("--ranker", metavar="FOLDER", help="The ranker that reorders the best passages, or none.")
]
Fused = Annotated[Fusion, typer.Option("--fusion", help="The method that joins the scores of words and vectors.")]
Discourse = Annotated[
    str | None,
    typer.Option(
        "--discourse",
        metavar="FOLDER",
        help="The discourse model for cdv search, or none. Default: as before in this library.",
    ),
]
Filter = Annotated[
    list[str] | None,
    typer.Option("--filter", metavar="NAME=VALUE", help="Only matching documents. May be repeated."),
]
VocabularyTables = Annotated[
    list[Path] | None,
    typer.Option("--vocabulary", metavar="CSV", help="Add your own names: code, name, synonyms."),
]
AspectsFromText = Annotated[
    bool,
    typer.Option(
        "--aspects-from-text/--no-aspects-from-text",
        help="Label passages of articles by their words as well as by headings.",
    ),
]
Without = Annotated[
    Path | None,
    typer.Option("--without", metavar="FILE", help="Entities of a test to leave out, one name on each line."),
]
WithoutPassages = Annotated[
    Path | None,
    typer.Option("--without-passages", metavar="JSONL", help="Texts of a test to leave out, wherever they occur."),
]
Aliases = Annotated[
    Path | None,
    typer.Option("--aliases", metavar="JSON", help="Other names of the entities of articles: {title: [name, ...]}."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON Lines instead of a table.")]

SHOWN_PROBLEMS, SHOWN_NOTICES = 100, 5
CONTROLS = {i: chr(0x2400 + i) for i in range(32) if chr(i) not in "\t\n\r"} | {0x7F: "␡"}
CONTROLS |= dict.fromkeys(range(128, 160), "�") | {0x9B: "␛"}
FAST = 30_000_000  # bytes per second of a command that only reads documents


class Documents:
    """Reads documents, reports problems on stderr, and shows a progress bar for large files on a terminal."""

    def __init__(
        self,
        files: list[str],
        format: str | None,
        column: list[str] | None,
        strict: bool,
        replace: bool,
        speed: int = FAST,
        verb: str = "read",
    ) -> None:
        """Begin to read files.

        Args:
            files: the files and folders to read.
            format: the format of the files; None to recognise it.
            column: the columns of fields, as FIELD=NAME.
            strict: whether to stop at the first problem.
            replace: whether a later document replaces an earlier one with the same id.
            speed: the bytes that the command processes per second; a smaller input has no progress bar.
            verb: what the command did with the documents, in the past tense, for messages.
        """
        self._verb = verb
        self._speed = speed
        self.console = terminal(stderr=True)
        self._notices = self._problems = 0
        self.reading: DocumentStream = read(
            files,
            format=format,
            columns=_parse_columns(column or []),
            strict=strict,
            replace=replace,
            on_problem=self.report,
        )

    def documents(self) -> Iterator[Document]:
        """Yield the documents, and show the progress."""
        if not sys.stderr.isatty() or self.reading.size < self._speed:
            yield from self.reading
            return
        columns = (
            BarColumn(),
            TextColumn("{task.percentage:3.0f}%  {task.fields[count]:,} documents{task.fields[rate]} "),
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
        """Summarise the problems, and exit with code 1 if there were any."""
        errors = self._problems
        if self._notices > SHOWN_NOTICES:
            self.console.print(f"... and {quantity(self._notices - SHOWN_NOTICES, 'more notice')}; no data was lost.")
        if errors > SHOWN_PROBLEMS:
            self.console.print(f"... and {quantity(errors - SHOWN_PROBLEMS, 'more problem')}.")
        if errors:
            rest = f" and {self._verb} the rest" if self.reading.documents else ""
            self.console.print(f"{quantity(errors, 'problem')}: capr skipped the input named above{rest}.")
            raise typer.Exit(1)

    def report(self, problem: Problem) -> None:
        """Print a problem or a notice, up to a maximum number of each."""
        if isinstance(problem, Notice):
            self._notices += 1
            shown = self._notices <= SHOWN_NOTICES
        else:
            self._problems += 1
            shown = self._problems <= SHOWN_PROBLEMS
        if shown:
            self.console.print(str(problem))


@dataclass(frozen=True, kw_only=True)
class DocumentOptions:
    """The options for the documents to read; see `capr.cli.options.expand_options`."""

    files: Files
    format: Format = None
    column: Column = None
    strict: Strict = False
    replace: Replace = False

    def read(self, speed: int = FAST) -> Documents:
        """Begin to read the documents; `speed` is the bytes that the command processes per second."""
        return Documents(self.files, self.format, self.column, self.strict, self.replace, speed)


def with_progress_bar(items: Iterable[Item], total: int, noun: str) -> Iterator[Item]:
    """Yield the items, with a progress bar on a terminal; `noun` names the items."""
    columns = (BarColumn(), TextColumn(f"{{task.completed:,}} of {{task.total:,}} {noun} "), TimeRemainingColumn())
    console = terminal(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("", total=total)
        for item in items:
            yield item
            progress.advance(task)


def check_questions(names: Sequence[str]) -> None:
    """Check that files are not plain text, which has no questions.

    Raises:
        CaprError: a path has plain text alone, and no JSON.
    """
    for name in names:
        paths = [file.path for file in files(name, Sidecars()) if not isinstance(file, Problem) and file.path]
        if paths and all(map(_is_plain_text, paths)):
            fact = f"{name} has plain text without questions, and not SQuAD's or emrQA's JSON"
            command = f"capr questions {shlex.quote(name)} -o questions.json"
            fix = f"make questions from it with {command}, and name that file"
            raise CaprError(f"{fact}. Fix: {fix}.")


def _is_plain_text(path: Path) -> bool:
    """Return whether a file begins as text, but not as JSON."""
    with path.open("rb") as file:
        head = file.read(1000)
    text = head.decode("utf-8-sig", "ignore").lstrip()
    is_binary = b"\0" in head or head.startswith(BINARY)
    return bool(text) and not is_binary and text[0] not in "{["


@contextmanager
def progress(noun: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar with the speed and the time left on a terminal.

    The context manager yields a function that takes the number of items done, and of all items. `noun` names the items.
    """
    columns = (
        BarColumn(),
        TextColumn(f"{{task.completed:,}} of {{task.total:,}} {noun}{{task.fields[rate]}} "),
        TimeRemainingColumn(),
    )
    start = time.monotonic()
    console = terminal(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as bar:
        task: TaskID | None = None

        def report_progress(done: int, total: int) -> None:
            nonlocal task
            if task is None:
                task = bar.add_task("", total=total, rate="")
            rate = f" ({done / max(time.monotonic() - start, 0.1):,.0f}/s)" if done else ""
            bar.update(task, completed=done, total=total, rate=rate)

        yield report_progress


def terminal(stderr: bool = False) -> Console:
    """Return a console that prints text unchanged: brackets and colons in a note are not markup."""
    return Console(stderr=stderr, soft_wrap=stderr, highlight=False, markup=False, emoji=False)


def printable(text: str) -> str:
    """Return a text that cannot control the terminal, with visible symbols for control characters."""
    return text.translate(CONTROLS)


def print_indented(console: Console, text: str | Text, style: str = "", label: str = "   ") -> None:
    """Print the indented lines of a hit or an answer; `label` precedes the first line."""
    rich_text = Text(text) if isinstance(text, str) else text
    for line in rich_text.wrap(console, max(20, console.width - 3)):
        line.rstrip()
        if line:
            console.print(Text(label.ljust(3)) + line, style=style, no_wrap=True)
            label = ""


def format_span(span: Span) -> str:
    """Format a span: `[12, 17)`."""
    return f"[{span.begin}, {span.end})"


def origin(metadata: Mapping[str, Any], title: str) -> str:
    """Format the patient, date, type and title of a document, without missing values."""
    values = [metadata.get(name) for name in ("patient", "date", "type")]
    return ", ".join(str(value) for value in (*values, title) if value)


def check_installed(task: str, package: str) -> None:
    """Raise `CaprError` if a package of the extra `evaluate` is missing, before a command does any work."""
    try:
        import_module(package)
    except ImportError as error:
        fact = f"{task} needs {error.name}, which is not installed"
        raise CaprError(f"{fact}. Fix: pip install 'capr[evaluate]'.") from error


def read_names(path: Path | None) -> set[str]:
    """Read the names in a file, one on each line."""
    if path is None:
        return set()
    if not path.is_file():
        raise CaprError(f"there is no {path}. Fix: name a file with one name on each line.")
    return {line.strip() for line in path.read_text("utf-8").splitlines() if line.strip()}


def read_texts(path: Path | None) -> list[str]:
    """Read the texts of the documents in a file."""
    return [document.text for document in read(path, strict=True)] if path else []


def read_aliases(path: Path | None) -> Mapping[str, Sequence[str]]:
    """Read other names of the entities of articles, by title."""
    if path is None:
        return {}
    try:
        names_by_title = json.loads(path.read_text("utf-8"))
        if not all(isinstance(names, list) for names in names_by_title.values()):
            raise ValueError("a title has no list of names")
    except (OSError, ValueError, AttributeError) as error:
        fix = 'write a JSON object: {"title": ["other name", ...]}'
        raise CaprError(f"{path} is not a file of other names ({error}). Fix: {fix}.") from error
    return dict(names_by_title)


def _parse_columns(pairs: list[str]) -> dict[str, str]:
    columns = {}
    for pair in pairs:
        field, equals, name = pair.partition("=")
        if not equals or not field or not name:
            raise CaprError(f"--column {pair!r} does not name a field and its column. Fix: write --column text=NOTE.")
        if field in columns:
            raise CaprError(f"--column names the {field} twice. Fix: name it once; text=a+b joins several columns.")
        columns[field] = name
    return columns

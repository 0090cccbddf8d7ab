"""Files and folders in, documents out: recognises formats, collects problems, watches over ids."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from capr.documents.document import Document
from capr.documents.files import File, Sidecars, files
from capr.documents.format import Format
from capr.documents.formats import BY_NAME, recognise
from capr.documents.problem import CaprError, Notice, Problem, ReadError
from capr.documents.records import USUAL_NAMES
from capr.documents.source import ESCAPED_BYTE, WINDOWS_1252, Source, Unpacked

PROBLEMS_KEPT = 1000
WITH_COLUMNS = ("csv", "jsonl", "mimic")
BAD_GZIP = Problem(
    "the gzip data ends too early or is damaged; the records before this place were read",
    "copy or download the file again",
)


class Reading:
    """An iteration over documents that keeps account of what went wrong.

    Iterate over it once. Afterwards (or meanwhile) the attributes tell how it went.

    Attributes:
        documents: how many were read.
        characters: their length together.
        errors: how many problems there were; each names what could not be read.
        problems: the first thousand problems and notices.
        formats: how many documents came in each format.
        replaced: how many had the id of an earlier one (with `replace`).
        position, size: bytes read so far and bytes in all, for progress.
    """

    def __init__(
        self,
        inputs: Sequence[File | Problem],
        *,
        format: str | None = None,
        columns: Mapping[str, str] | None = None,
        strict: bool = False,
        replace: bool = False,
        on_problem: Callable[[Problem], None] | None = None,
        unpacked: Unpacked | None = None,
    ) -> None:
        self.documents = self.characters = self.errors = self.replaced = 0
        self.problems: list[Problem] = []
        self.formats: Counter[str] = Counter()
        self.size = sum(_size(file.path) for file in inputs if isinstance(file, File) and file.path)
        self._inputs = inputs
        self._format = _format_named(format)
        self._columns = _checked_columns(columns or {})
        self._strict, self._replace, self._on_problem, self._unpacked = strict, replace, on_problem, unpacked
        self._done = 0
        self._source: Source | None = None
        self._reading = ""  # the name of the format that is being read

    @property
    def position(self) -> int:
        """Bytes read so far, of `size`."""
        return self._done + (self._source.position if self._source else 0)

    def __iter__(self) -> Iterator[Document]:
        with SeenIds() as seen:
            for file in self._inputs:
                if isinstance(file, Problem):
                    self._report(file)
                    continue
                for item in self._file(file):
                    if isinstance(item, Document):
                        item = self._checked(item, file, seen)
                    if isinstance(item, Problem):
                        self._report(item.at(file.label))
                        continue
                    self.formats[self._reading] += 1
                    self.documents += 1
                    self.characters += len(item.text)
                    yield item

    def _file(self, file: File) -> Iterator[Document | Problem]:
        """The records of one file; whatever breaks it as a whole becomes a problem at its last good line."""
        try:
            with Source.open(file.path, file.label, file.name, self._columns, file.metadata, self._unpacked) as source:
                self._source = source
                format = self._format or recognise(source.name, source.head)
                if format is None:
                    fix = "convert it to text, or name its format with --format"
                    yield Problem("it is not in a format that capr reads", fix)
                    return
                self._reading = format.name
                if self._columns and format.name not in WITH_COLUMNS:
                    fix = "use --format csv or --format jsonl if it is a table or JSON Lines"
                    yield Notice(f"it was read as {format.name}, where --column has no effect", fix)
                found = False
                try:
                    for item in format.read(source):
                        found = True
                        yield item
                    if not found:
                        fix = f"check that it is complete, and that its format is {format.name} (--format)"
                        yield Notice("no document was found in it", fix)
                except (EOFError, gzip.BadGzipFile, zlib.error):
                    yield replace(BAD_GZIP, line=source.line or None)
                except ReadError as error:
                    yield replace(error.problem, line=source.line or None)
                except UnicodeError as error:
                    reason = f"({error.reason})" if isinstance(error, UnicodeDecodeError) else f"({error})"
                    name = error.encoding if isinstance(error, UnicodeDecodeError) else source.encoding
                    fact = f"wrong encoding: it begins as {name} but is not {reason}"
                    yield Problem(fact, "save the file as UTF-8", line=source.line or None)
                yield from source.notices
                self._done += source.position
        except (EOFError, gzip.BadGzipFile, zlib.error):  # within the first bytes
            yield BAD_GZIP
        except ReadError as error:
            yield error.problem
        except OSError as error:
            yield Problem(f"it cannot be read ({error.strerror or error})", "check the path and its permissions")
        finally:
            self._source = None

    def _checked(self, document: Document, file: File, seen: SeenIds) -> Document | Problem:
        """The document with its source, or the reason why it cannot be kept."""
        for name, value in (("id", document.id), ("title", document.title), ("text", document.text)):
            if not value.isascii() and (problem := _unusable(name, value)):
                return replace(problem, record=document.id)
        said = [document.metadata, *(annotation.value for annotation in document.annotations)]
        if problem := _unusable("metadata", json.dumps(said, ensure_ascii=False, default=str)):
            return replace(problem, record=document.id)
        beside = dict(file.metadata)  # a metadata.csv may also name and title the document
        identifier = beside.pop("id", document.id)
        title = beside.pop("title", document.title)
        metadata = {"source": file.source, "file": file.name, **document.metadata, **beside}
        if not document.text.strip():
            fix = "check that its export is complete"
            self._report(Notice("the document is empty", fix, file.label, record=identifier))
        first = seen.place_of(identifier, file.label)
        if first is not None and not self._replace:
            fact = f"the id {identifier!r} was read before, from {first}"
            fix = "give each its own id, read their common folder instead of both, or let the later one win (--replace)"
            return Problem(fact, fix, record=identifier)
        self.replaced += first is not None
        return replace(document, id=identifier, title=title, metadata=metadata)

    def _report(self, problem: Problem) -> None:
        if not isinstance(problem, Notice):
            if self._strict:
                raise ReadError(problem)
            self.errors += 1
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append(problem)
        if self._on_problem:
            self._on_problem(problem)


class SeenIds:
    """The ids read so far, in a temporary database on disk: exact, and memory does not grow with their number."""

    def __enter__(self) -> SeenIds:
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("CREATE TABLE seen (id TEXT PRIMARY KEY, place TEXT) WITHOUT ROWID")
        self._database.execute("BEGIN")
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def place_of(self, identifier: str, place: str) -> str | None:
        """Where the id was seen before; None, and it is remembered, if it was not."""
        added = self._database.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (identifier, place)).rowcount
        if added:
            return None
        (first,) = self._database.execute("SELECT place FROM seen WHERE id = ?", (identifier,)).fetchone()
        return str(first)


def read(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    strict: bool = False,
    replace: bool = False,
    on_problem: Callable[[Problem], None] | None = None,
    unpacked: Unpacked | None = None,
) -> Reading:
    """Reads documents from files and folders, one at a time.

    Args:
        paths: files, folders (read with everything below them, hidden files left out) or "-" for standard input.
            A `metadata.csv` in a folder describes the files beside it: a column `file`, and any others.
        format: one of `capr.documents.formats.BY_NAME`; found from content and name if not given.
        columns: for tables and JSON Lines, which column holds what, e.g. `{"text": "NOTE", "id": "ROW_ID"}`.
        strict: raise `ReadError` at the first problem instead of reading on.
        replace: allow an id that was read before; whoever keeps the documents keeps the later one.
        on_problem: called with each problem and notice as it is met.
        unpacked: counts the bytes that gzip files unpack to, and may limit them; for files of people you do not know.

    Returns:
        An iterable of documents that also counts, and keeps the problems.

    Raises:
        CaprError: a path that does not exist, an unknown format or column field.

    Example:
        >>> import capr
        >>> reading = capr.read(capr.samples.folder() / "articles")
        >>> titles = [document.title for document in reading]
        >>> reading.documents, reading.errors
        (32, 0)
    """
    listed = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if sum(str(path) == "-" for path in listed) > 1:
        raise CaprError("standard input (-) is named twice, but can be read only once. Fix: name it once.")
    beside = Sidecars()
    inputs = [file for path in listed for file in files(path, beside)]
    inputs += beside.problems
    return Reading(
        inputs, format=format, columns=columns, strict=strict, replace=replace, on_problem=on_problem, unpacked=unpacked
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _format_named(name: str | None) -> Format | None:
    if name is None or name in BY_NAME:
        return BY_NAME[name] if name else None
    raise CaprError(f"there is no format {name!r}. Fix: use one of {', '.join(BY_NAME)}.")


def _checked_columns(columns: Mapping[str, str]) -> Mapping[str, str]:
    unknown = [field for field in columns if field not in USUAL_NAMES]
    if unknown:
        known = ", ".join(USUAL_NAMES)
        raise CaprError(f"there is no field {unknown[0]!r} to map a column to. Fix: use one of {known}.")
    return columns


def _unusable(name: str, value: str) -> Problem | None:
    """Text that cannot be written as UTF-8 could be neither stored nor shown."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        stray = ESCAPED_BYTE.search(value)
        if stray and ord(stray[0]) not in WINDOWS_1252:
            byte = ord(stray[0]) - 0xDC00
            fact = f"wrong encoding: byte 0x{byte:02X} of the {name} is neither UTF-8 nor Windows-1252"
            return Problem(fact, "save the file as UTF-8")
        fact = f"the {name} holds half of a surrogate pair, U+{ord(value[error.start]):04X}"
        return Problem(fact, r"write the character itself, or both halves of its \u escape")
    return None

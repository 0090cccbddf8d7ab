"""`read`: documents from files and folders. It recognises formats, collects problems and rejects repeated ids."""

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

MAX_PROBLEMS = 1000
FORMATS_WITH_COLUMNS = ("csv", "jsonl", "mimic")
BAD_GZIP = Problem(
    "the gzip data ends too early or is damaged; the records before this line were read",
    "copy or download the file again",
)


class DocumentStream:
    """The iterable that `capr.read` returns: it yields documents, counts them and collects problems.

    Iterate over it once. The attributes are up to date during and after the iteration.

    Attributes:
        documents: number of documents read.
        characters: total length of these documents.
        errors: number of problems; each names a record or file that could not be read.
        problems: the first 1,000 problems and notices.
        formats: number of documents in each format.
        replaced: number of documents with the id of an earlier document (with `replace`).
        position, size: bytes read so far, and size of all files in bytes, for progress.

    Example:
        >>> import capr
        >>> stream = capr.read(capr.samples.folder() / "notes")
        >>> ids = [document.id for document in stream]
        >>> stream.documents, stream.errors, dict(stream.formats)
        (70, 0, {'text': 70})
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
        self._format = _find_format(format)
        self._columns = _check_columns(columns or {})
        self._strict, self._replace, self._on_problem, self._unpacked = strict, replace, on_problem, unpacked
        self._done = 0
        self._source: Source | None = None
        self._format_name = ""  # of the current file

    @property
    def position(self) -> int:
        """Number of bytes read so far, of `size`."""
        return self._done + (self._source.position if self._source else 0)

    def __iter__(self) -> Iterator[Document]:
        with SeenIds() as seen_ids:
            for file in self._inputs:
                if isinstance(file, Problem):
                    self._report(file)
                    continue
                for item in self._read_file(file):
                    if isinstance(item, Document):
                        item = self._add_source(item, file, seen_ids)
                    if isinstance(item, Problem):
                        self._report(item.at(file.label))
                        continue
                    self.formats[self._format_name] += 1
                    self.documents += 1
                    self.characters += len(item.text)
                    yield item

    def _read_file(self, file: File) -> Iterator[Document | Problem]:
        """Yield the records of one file. An error that ends the file becomes a problem at its last good line."""
        try:
            with Source.open(file.path, file.label, file.name, self._columns, file.metadata, self._unpacked) as source:
                self._source = source
                format = self._format or recognise(source.name, source.head)
                if format is None:
                    fix = "convert it to text, or name its format with --format"
                    yield Problem("it is not in a format that capr reads", fix)
                    return
                self._format_name = format.name
                documents_before = self.documents
                if self._columns and format.name not in FORMATS_WITH_COLUMNS:
                    fix = "use --format csv or --format jsonl if it is a table or JSON Lines"
                    yield Notice(f"it was read as {format.name}, where --column has no effect", fix)
                empty = True
                try:
                    for item in format.read(source):
                        empty = False
                        yield item
                    if empty:
                        fix = f"check that it is complete, and that its format is {format.name} (--format)"
                        yield Notice("the file holds no document", fix)
                except (EOFError, gzip.BadGzipFile, zlib.error):
                    yield replace(BAD_GZIP, line=source.line or None)
                except ReadError as error:
                    yield replace(error.problem, line=source.line or None)
                except UnicodeError as error:
                    reason = f"({error.reason})" if isinstance(error, UnicodeDecodeError) else f"({error})"
                    encoding = error.encoding if isinstance(error, UnicodeDecodeError) else source.encoding
                    fact = f"wrong encoding: it begins as {encoding} but is not {reason}"
                    yield Problem(fact, "save the file as UTF-8", line=source.line or None)
                yield from source.notices
                if source.encoding_notice and self.documents > documents_before:
                    yield source.encoding_notice
                self._done += source.position
        except (EOFError, gzip.BadGzipFile, zlib.error):  # damage in the first bytes
            yield BAD_GZIP
        except ReadError as error:
            yield error.problem
        except OSError as error:
            yield Problem(f"it cannot be read ({error.strerror or error})", "check the path and its permissions")
        finally:
            self._source = None

    def _add_source(self, document: Document, file: File, seen_ids: SeenIds) -> Document | Problem:
        """Return the document with its source and metadata, or the problem that makes it unusable."""
        for name, value in (("id", document.id), ("title", document.title), ("text", document.text)):
            if not value.isascii() and (problem := _encoding_problem(name, value)):
                return replace(problem, record=document.id)
        fields = [document.metadata, *(annotation.value for annotation in document.annotations)]
        if problem := _encoding_problem("metadata", json.dumps(fields, ensure_ascii=False, default=str)):
            return replace(problem, record=document.id)
        sidecar = dict(file.metadata)  # a metadata.csv may also set the id and the title
        identifier = sidecar.pop("id", document.id)
        title = sidecar.pop("title", document.title)
        metadata = {"source": file.source, "file": file.name, **document.metadata, **sidecar}
        if not document.text.strip():
            fix = "check that its export is complete"
            self._report(Notice("the document is empty", fix, file.label, record=identifier))
        earlier_file = seen_ids.add(identifier, file.label)
        if earlier_file is not None and not self._replace:
            fact = f"the id {identifier!r} was read before, from {earlier_file}"
            fix = "give each document its own id, read the folder that contains both, or keep the later one (--replace)"
            return Problem(fact, fix, record=identifier)
        self.replaced += earlier_file is not None
        return replace(document, id=identifier, title=title, metadata=metadata)

    def _report(self, problem: Problem) -> None:
        if not isinstance(problem, Notice):
            if self._strict:
                raise ReadError(problem)
            self.errors += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)
        if self._on_problem:
            self._on_problem(problem)


class SeenIds:
    """The ids read so far, in a temporary database on disk, so that memory does not grow with their number."""

    def __enter__(self) -> SeenIds:
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("CREATE TABLE seen (id TEXT PRIMARY KEY, file TEXT) WITHOUT ROWID")
        self._database.execute("BEGIN")
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def add(self, identifier: str, file: str) -> str | None:
        """Remember an id of a file. Return the file that had the id before, or None for a new id."""
        added = self._database.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (identifier, file)).rowcount
        if added:
            return None
        (earlier_file,) = self._database.execute("SELECT file FROM seen WHERE id = ?", (identifier,)).fetchone()
        return str(earlier_file)


def read(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    strict: bool = False,
    replace: bool = False,
    on_problem: Callable[[Problem], None] | None = None,
    unpacked: Unpacked | None = None,
) -> DocumentStream:
    """Read documents from files and folders, one at a time.

    The reader keeps every character of the text. It reports a record that it cannot read as a problem and goes on.

    Args:
        paths: files, folders or "-" for standard input. A folder stands for all files below it, except hidden ones.
            A `metadata.csv` in a folder describes the files in that folder: a column `file` and any other columns.
        format: a name from `capr.documents.formats.BY_NAME`; by default, capr recognises the format of each file.
        columns: for tables and JSON Lines, the column that holds each field, e.g. `{"text": "NOTE", "id": "ROW_ID"}`.
        strict: raise `ReadError` at the first problem instead of reading on.
        replace: allow an id that was read before. A library then keeps the later document.
        on_problem: a function to call with each problem and notice as soon as it occurs.
        unpacked: a counter, perhaps with a limit, of the bytes that gzip files unpack to; for files of unknown origin.

    Returns:
        An iterable of documents that counts them and collects the problems.

    Raises:
        CaprError: a path does not exist, or a format or field is unknown.
        ReadError: while iterating with `strict`, at the first problem.

    Example:
        >>> import capr
        >>> stream = capr.read(capr.samples.folder() / "articles")
        >>> titles = [document.title for document in stream]
        >>> stream.documents, stream.errors
        (32, 0)
    """
    path_list = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if sum(str(path) == "-" for path in path_list) > 1:
        raise CaprError("standard input (-) is named twice, but can be read only once. Fix: name it once.")
    sidecars = Sidecars(format is not None or "text" in (columns or {}), any_case=unpacked is None)
    inputs = [file for path in path_list for file in files(path, sidecars)]
    inputs += sidecars.problems
    return DocumentStream(
        inputs, format=format, columns=columns, strict=strict, replace=replace, on_problem=on_problem, unpacked=unpacked
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _find_format(name: str | None) -> Format | None:
    if name is None or name in BY_NAME:
        return BY_NAME[name] if name else None
    raise CaprError(f"there is no format {name!r}. Fix: use one of {', '.join(BY_NAME)}.")


def _check_columns(columns: Mapping[str, str]) -> Mapping[str, str]:
    unknown = [field for field in columns if field not in USUAL_NAMES]
    if unknown:
        known = ", ".join(USUAL_NAMES)
        raise CaprError(f"there is no field {unknown[0]!r} to map a column to. Fix: use one of {known}.")
    return columns


def _encoding_problem(name: str, value: str) -> Problem | None:
    """Return a problem if UTF-8 cannot encode a value, because capr could then neither store nor show it."""
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

"""The files that a path stands for, with the metadata of a `metadata.csv` in the same folder."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from capr.documents import delimited
from capr.documents.dates import OtherDates, iso_date
from capr.documents.problem import CaprError, Notice, Problem
from capr.documents.records import field_names
from capr.documents.similar_names import near_name, near_name_notices
from capr.documents.source import Source

SIDECAR = ("metadata.csv", "metadata.tsv")
SHOWN = 3  # files to name in a notice


class File(NamedTuple):
    """A file to read.

    Attributes:
        path: the path of the file; None for standard input.
        label: the file as the user named it.
        name: the path below the folder that the user named, or the file name.
        source: the name of that folder, or of the file.
        metadata: the file's row of the `metadata.csv` in the same folder.
    """

    path: Path | None
    label: str
    name: str
    source: str
    metadata: Mapping[str, str]


def files(path: str | os.PathLike[str], sidecars: Sidecars) -> Iterator[File | Problem]:
    """Yield the file at a path, or all files below a folder. Follow links, and skip hidden names."""
    if str(path) == "-":
        yield File(None, "standard input", "stdin", "stdin", {})
        return
    if not str(path):
        raise CaprError("a path is empty. Fix: name a file or folder; . is the current one.")
    path = Path(path)
    if path.is_dir():
        yield from _below(path, path, sidecars, frozenset())
    elif _is_sidecar_name(path) and sidecars.only_describes(path):
        fact = "the table describes the files of its folder and has no texts of its own"
        yield Problem(fact, f"read the folder ({path.parent})", str(path))
    elif path.exists():
        yield _file(path, path.name, path.name, sidecars)
    else:
        raise missing_path(path)


def missing_path(path: str | os.PathLike[str]) -> CaprError:
    """Return the error about a path at which nothing exists."""
    return CaprError(f"{os.fspath(path)}: there is no such file or folder. Fix: check the path.")


def _below(folder: Path, top: Path, sidecars: Sidecars, ancestors: frozenset[Path]) -> Iterator[File | Problem]:
    resolved = folder.resolve()
    if resolved in ancestors:
        yield Notice("the link leads back to a folder above it and was not followed", "remove the link", str(folder))
        return
    try:
        entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        yield Problem(f"the folder cannot be read ({error.strerror})", "check its permissions", str(folder))
        return
    if folder == top and not entries:
        yield Problem("there are no files in the folder", "check the path", str(folder))
    names = []
    for entry in entries:
        if not entry.is_dir() and not sidecars.is_sidecar(entry):
            names.append(entry.name)
            yield _file(entry, entry.relative_to(top).as_posix(), top.resolve().name, sidecars)
    yield from sidecars.files_without_row(folder, names)
    for entry in entries:
        if entry.is_dir():
            yield from _below(entry, top, sidecars, ancestors | {resolved})


def _file(path: Path, name: str, source: str, sidecars: Sidecars) -> File | Problem:
    if path.exists() and not path.is_file():
        return Problem("it is not a regular file", "save its content to a file, and read that", str(path))
    metadata = sidecars.metadata_by_file(path.parent).get(path.name, {}) if not _is_sidecar_name(path) else {}
    return File(path, str(path), name, source, metadata)


def _is_sidecar_name(path: Path) -> bool:
    return path.name.lower() in SIDECAR


class Sidecars:
    """The `metadata.csv` tables that describe the files in their folders.

    A table has a column `file`. Each table is read once.

    Args:
        as_documents: whether the user named a format or a text column, so that a table that is named itself has texts.
        any_case: whether the name may have another case (`Metadata.CSV`). Use False for files of unknown origin: the
            limit on unpacked bytes does not apply to these tables.

    Attributes:
        problems: the rows and tables that could not be read, rows about files that do not exist, and notices.
    """

    def __init__(self, as_documents: bool = False, any_case: bool = True) -> None:
        self.problems: list[Problem] = []
        self._as_documents, self._any_case = as_documents, any_case
        self._folders: dict[Path, dict[str, dict[str, str]]] = {}
        self._unusable: set[Path] = set()  # tables that describe no file, because they have no column for it

    def metadata_by_file(self, folder: Path) -> dict[str, dict[str, str]]:
        """Return the metadata of the files in a folder by file name; empty if the folder has no such table."""
        if folder not in self._folders:
            path = self._path(folder)
            self._folders[folder] = self._read(path) if path else {}
        return self._folders[folder]

    def files_without_row(self, folder: Path, names: Collection[str]) -> Iterator[Notice]:
        """Yield one notice about the files of a folder that its table does not describe."""
        metadata_by_file = self.metadata_by_file(folder)
        missing = [name for name in names if name not in metadata_by_file] if metadata_by_file else []
        if missing:
            verb = "has" if len(missing) == 1 else "have"
            more = ", ..." if len(missing) > SHOWN else ""
            fact = f"{len(missing):,} of the {len(names):,} files beside it {verb} no row"
            fix = "add a row for each, so that filters find them"
            yield Notice(f"{fact}: {', '.join(missing[:SHOWN])}{more}", fix, str(self._path(folder)))

    def _path(self, folder: Path) -> Path | None:
        """Return the table in a folder that describes the files beside it."""
        path = next((folder / name for name in SIDECAR if (folder / name).is_file()), None)
        if path is not None or not self._any_case:
            return path
        try:
            return next((path for path in sorted(folder.iterdir()) if _is_sidecar_name(path) and path.is_file()), None)
        except OSError:
            return None

    def is_sidecar(self, path: Path) -> bool:
        """Return whether a file in a folder is a table about the files beside it, even one without a usable column."""
        return _is_sidecar_name(path) and (bool(self.metadata_by_file(path.parent)) or path in self._unusable)

    def only_describes(self, path: Path) -> bool:
        """Return whether a table describes other files and has no column with a text."""
        if self._as_documents or not path.is_file():
            return False
        rows = self.metadata_by_file(path.parent).values()
        names = dict.fromkeys(name for row in rows for name in row)
        return bool(rows) and "text" not in field_names(list(names), {})

    def _read(self, path: Path) -> dict[str, dict[str, str]]:
        table: dict[str, dict[str, str]] = {}
        names: list[str] = []
        other_dates = OtherDates()
        try:
            with Source.open(path, str(path), path.name, {}, {}) as source:
                for row in delimited.rows(source):
                    if isinstance(row, Problem):
                        self.problems.append(row.at(str(path)))
                    elif "file" not in row.values:
                        self._check_texts(path, list(row.values))
                        return {}
                    else:
                        names = names or list(row.values)
                        metadata = {name: value for name, value in row.values.items() if name != "file" and value}
                        if "date" in metadata:
                            metadata["date"] = iso_date(metadata["date"])
                            other_dates.add(metadata["date"], row.line)
                        table[row.values["file"]] = metadata
                        if not (path.parent / row.values["file"]).exists():
                            fact = f"it describes {row.values['file']!r}, which does not exist"
                            self.problems.append(Problem(fact, "correct the name", str(path), line=row.line))
        except (OSError, EOFError, UnicodeError) as error:
            self.problems.append(Problem(f"it cannot be read ({error})", "check the file", str(path)))
        self.problems += (notice.at(str(path)) for notice in near_name_notices(names, names, may_map=False))
        if notice := other_dates.notice():
            self.problems.append(notice.at(str(path)))
        return table

    def _check_texts(self, path: Path, names: list[str]) -> None:
        """Report a table that has neither a column `file` nor a text; it cannot be one of documents either."""
        if self._as_documents or "text" in field_names(names, {}):
            return
        self._unusable.add(path)
        near = near_name("file", names)
        column = f"the column {near!r}" if near else "the column with the names of the files"
        fact = f"the table has no column 'file'; its columns are: {', '.join(names[:20])}"
        fix = f"rename {column} to file, or name a column with texts by --column text=NAME"
        self.problems.append(Problem(fact, fix, str(path), line=1))

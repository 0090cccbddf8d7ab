"""Which files a path means, and what a `metadata.csv` beside them says."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from capr.documents import delimited
from capr.documents.dates import iso_date
from capr.documents.problem import CaprError, Notice, Problem
from capr.documents.source import Source

SIDECAR = ("metadata.csv", "metadata.tsv")


class File(NamedTuple):
    """A file to read.

    Attributes:
        path: None is standard input.
        label: the file as the user named it.
        name: its path below the folder that the user named, or its file name.
        source: the name of that folder, or of the file.
        metadata: what a `metadata.csv` beside it says.
    """

    path: Path | None
    label: str
    name: str
    source: str
    metadata: Mapping[str, str]


def files(given: str | os.PathLike[str], beside: Sidecars) -> Iterator[File | Problem]:
    """The files that a path means: itself, or everything below a folder, links followed, hidden names left out."""
    if str(given) == "-":
        yield File(None, "standard input", "stdin", "stdin", {})
        return
    if not str(given):
        raise CaprError("a path is empty. Fix: name a file or folder; . is the current one.")
    path = Path(given)
    if path.is_dir():
        yield from _below(path, path, beside, frozenset())
    elif path.exists():
        yield _file(path, path.name, path.name, beside)
    else:
        raise CaprError(f"{path}: there is no such file or folder. Fix: check the path.")


def _below(folder: Path, top: Path, beside: Sidecars, above: frozenset[Path]) -> Iterator[File | Problem]:
    real = folder.resolve()
    if real in above:
        yield Notice("the link leads back to a folder above it and was not followed", "remove the link", str(folder))
        return
    try:
        entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        yield Problem(f"the folder cannot be read ({error.strerror})", "check its permissions", str(folder))
        return
    if folder == top and not entries:
        yield Problem("there are no files in the folder", "check the path", str(folder))
    for entry in entries:
        if not entry.is_dir() and not (entry.name in SIDECAR and beside.of(folder)):
            yield _file(entry, entry.relative_to(top).as_posix(), top.resolve().name, beside)
    for entry in entries:
        if entry.is_dir():
            yield from _below(entry, top, beside, above | {real})


def _file(path: Path, name: str, source: str, beside: Sidecars) -> File | Problem:
    if path.exists() and not path.is_file():
        return Problem("it is not a regular file", "read a copy of what it gives", str(path))
    own = beside.of(path.parent).get(path.name, {}) if path.name not in SIDECAR else {}
    return File(path, str(path), name, source, own)


class Sidecars:
    """What the `metadata.csv` files with a column `file` say of the files beside them; each is read once."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._folders: dict[Path, dict[str, dict[str, str]]] = {}

    def of(self, folder: Path) -> dict[str, dict[str, str]]:
        """By file name; empty if there is no such table."""
        if folder not in self._folders:
            path = next((folder / name for name in SIDECAR if (folder / name).is_file()), None)
            self._folders[folder] = self._read(path) if path else {}
        return self._folders[folder]

    def _read(self, path: Path) -> dict[str, dict[str, str]]:
        table: dict[str, dict[str, str]] = {}
        try:
            with Source.open(path, str(path), path.name, {}, {}) as source:
                for row in delimited.rows(source):
                    if isinstance(row, Problem):
                        self.problems.append(row.at(str(path)))
                    elif "file" not in row.values:
                        return {}
                    else:
                        said = {name: value for name, value in row.values.items() if name != "file" and value}
                        if "date" in said:
                            said["date"] = iso_date(said["date"])
                        table[row.values["file"]] = said
                        if not (path.parent / row.values["file"]).exists():
                            fact = f"it describes {row.values['file']!r}, which is not there"
                            self.problems.append(Notice(fact, "correct the name", str(path), line=row.line))
        except (OSError, EOFError, UnicodeError) as error:
            self.problems.append(Problem(f"it cannot be read ({error})", "check the file", str(path)))
        return table

"""Problems and notices about input, and the errors that capr raises. Each states the location, the fact and the fix."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class Problem:
    """A record or file that a reader could not read. The reader goes on with the rest of the input.

    Attributes:
        fact: what is wrong, with the offending value.
        fix: what the user can do about it.
        file: the file as the user named it.
        line: the line of the file, counted from 1.
        record: the number (counted from 1) or the id of the record, in formats without meaningful lines.

    Example:
        >>> print(Problem("the text is a list, not a string", "write one string", "notes.jsonl", line=12))
        notes.jsonl, line 12: the text is a list, not a string. Fix: write one string.
    """

    fact: str
    fix: str
    file: str = ""
    line: int | None = None
    record: str | int | None = None

    def at(self, file: str) -> Self:
        """Return the problem with `file` filled in, unless it names a file already."""
        return self if self.file else replace(self, file=file)

    @property
    def place(self) -> str:
        """The file, line and record: `notes.csv, line 12, record 'n7'`."""
        parts = [self.file]
        if self.line is not None:
            parts.append(f"line {self.line}")
        if self.record is not None:
            parts.append(f"record {self.record!r}" if isinstance(self.record, str) else f"record {self.record}")
        return ", ".join(part for part in parts if part)

    def __str__(self) -> str:
        return f"{self.place}: {self.fact}. Fix: {self.fix}."


class Notice(Problem):
    """A message about input that was read, but perhaps not as the user expects."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{self.place}: {self.fact}. {self.fix[:1].upper()}{self.fix[1:]}."


class CaprError(Exception):
    """The base class of all errors that capr raises on purpose."""


class NotFoundError(CaprError):
    """The named document, library or other object does not exist."""


class BusyError(CaprError):
    """The operation must wait, because another process or thread is writing."""


class UnavailableError(CaprError):
    """A valid request that cannot be met: a model is missing, a disk is full, a file is damaged."""


class ReadError(CaprError):
    """The first problem of a strict reading, or input that cannot be read at all.

    Attributes:
        problem: the location, fact and fix.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem

"""What can be wrong with input: said with the place, the fact and the fix."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class Problem:
    """Something of the input that could not be read; the rest was.

    Attributes:
        fact: what is wrong, with the offending value.
        fix: what the user can do about it.
        file: as the user named it.
        line: of the file, counted from 1.
        record: the number (from 1) or the id of the record, where lines mean nothing.
    """

    fact: str
    fix: str
    file: str = ""
    line: int | None = None
    record: str | int | None = None

    def at(self, file: str) -> Self:
        """The same, in that file, unless it names one already."""
        return self if self.file else replace(self, file=file)

    @property
    def place(self) -> str:
        """`notes.csv, line 12, record 'n7'`."""
        parts = [self.file]
        if self.line is not None:
            parts.append(f"line {self.line}")
        if self.record is not None:
            parts.append(f"record {self.record!r}" if isinstance(self.record, str) else f"record {self.record}")
        return ", ".join(part for part in parts if part)

    def __str__(self) -> str:
        return f"{self.place}: {self.fact}. Fix: {self.fix}."


class Notice(Problem):
    """Something that the user should know; nothing was lost."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{self.place}: {self.fact}. {self.fix[:1].upper()}{self.fix[1:]}."


class CaprError(Exception):
    """Every error that capr raises on purpose."""


class NotThereError(CaprError):
    """What was named is not there."""


class BusyError(CaprError):
    """It is possible, but not now: somebody else is at it."""


class UnavailableError(CaprError):
    """It was asked for rightly, and cannot be given: a model is missing, a disk is full, a file is damaged."""


class ReadError(CaprError):
    """The first problem, when reading is strict; or input that cannot be read at all."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem

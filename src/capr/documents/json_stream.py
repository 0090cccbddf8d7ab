"""JSON files larger than memory, value by value, with the standard library's own decoder.

The decoder needs a whole value in memory, but only one: a stream walks into the objects and lists that hold the
records, and decodes each record when it comes to it. (ijson was tried first; it replaces half surrogate pairs by "?",
ends the file at one bad byte, at NaN and at integers beyond 64 bits, and needs memory quadratic in the depth.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from capr.documents.problem import Problem
from capr.documents.source import Source

NOT_BLANK = re.compile(r"[^ \t\r\n]")
MARGIN = 16  # an error this close to the end of what was read so far may only mean that more is needed


class BrokenJsonError(Exception):
    """The text is not JSON, from here on."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.line = line

    def problem(self, record: int) -> Problem:
        """The rest of the file is lost: nobody can tell where the next record begins."""
        fix = "repair or export the file again; the records before this one were read, nothing after it was"
        return Problem(f"broken JSON ({self})", fix, line=self.line, record=record)


def decode(text: str) -> Any:
    """A JSON value; every failure of the decoder is a `json.JSONDecodeError` with its place.

    Raises:
        json.JSONDecodeError: not JSON, nested too deeply, or a number of too many digits.
    """
    text = text.rstrip("\r\n")
    try:
        return json.loads(text)
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", text, 0) from None
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # an integer of thousands of digits
        raise json.JSONDecodeError(str(error).split(":")[0], text, 0) from None


class JsonStream:
    """A pull parser: ask what comes next, then walk into it or take it whole.

    >>> from types import SimpleNamespace
    >>> stream = JsonStream(SimpleNamespace(chunks=lambda: iter(['{"a": 1, "b": [2, ', '3]}'])))
    >>> {key: list(stream.elements()) if stream.next() == "[" else stream.value() for key in stream.members()}
    {'a': 1, 'b': [2, 3]}
    """

    def __init__(self, source: Source) -> None:
        self._chunks = source.chunks()
        self._buffer = ""
        self._position = 0
        self._line = 1
        self._ended = False
        self._decoder = json.JSONDecoder()

    def next(self) -> str:
        """The first character of what comes next, blanks left out; empty at the end."""
        while True:
            found = NOT_BLANK.search(self._buffer, self._position)
            self._position = found.start() if found else len(self._buffer)
            if self._position < len(self._buffer) or not self._read():
                return self._buffer[self._position : self._position + 1]

    def value(self) -> Any:
        """Takes the next value whole."""
        self.next()
        while True:
            start = self._position  # reading more moves it to 0
            try:
                value, end = self._decoder.raw_decode(self._buffer, start)
            except json.JSONDecodeError as error:
                unfinished = error.msg.startswith("Unterminated") or error.pos >= len(self._buffer) - MARGIN
                if unfinished and self._read():
                    continue
                raise self._broken(error.msg, error.pos - start + self._position) from None
            except RecursionError:
                raise self._broken("nested too deeply", start) from None
            except ValueError as error:  # an integer of thousands of digits
                raise self._broken(str(error).split(":")[0], start) from None
            may_go_on = isinstance(value, int | float) and end >= len(self._buffer) - MARGIN
            if may_go_on and self._read():
                continue
            self._position += end - start
            return value

    def elements(self) -> Iterator[Any]:
        """The elements of the list that comes next, each whole."""
        for _ in self._inside("[", "]"):
            yield self.value()

    def walk_elements(self) -> Iterator[None]:
        """The elements of the list that comes next; the caller must take each, whole or by walking into it."""
        return self._inside("[", "]")

    def members(self) -> Iterator[str]:
        """The keys of the object that comes next; the caller must take each value, whole or by walking into it."""
        for _ in self._inside("{", "}"):
            if self.next() != '"':
                raise self._broken("Expecting a property name in double quotes", self._position)
            key = self.value()
            self._expect(":")
            yield key

    def end(self) -> None:
        """Nothing but blanks may follow."""
        if self.next():
            raise self._broken("Extra data", self._position)

    def _inside(self, opening: str, closing: str) -> Iterator[None]:
        self._expect(opening)
        if self.next() == closing:
            self._position += 1
            return
        while True:
            yield
            if self.next() == closing:
                self._position += 1
                return
            self._expect(",")

    def _expect(self, character: str) -> None:
        if self.next() != character:
            found = repr(self.next()) if self.next() else "the end of the file"
            raise self._broken(f"Expecting {character!r}, not {found}", self._position)
        self._position += 1

    def _read(self) -> bool:
        """Drops what was taken and reads at least as much as is waiting, so that a long value is tried few times."""
        self._line += self._buffer.count("\n", 0, self._position)
        waiting = self._buffer[self._position :]
        parts = [waiting]
        wanted = max(1, len(waiting))
        while wanted > 0 and not self._ended:
            chunk = next(self._chunks, "")
            self._ended = not chunk
            parts.append(chunk)
            wanted -= len(chunk)
        self._buffer, self._position = "".join(parts), 0
        return len(self._buffer) > len(waiting)

    def _broken(self, what: str, position: int) -> BrokenJsonError:
        return BrokenJsonError(what, self._line + self._buffer.count("\n", 0, position))


class Record(NamedTuple):
    """A value with its number, from 1, and its line if every line is one."""

    number: int
    line: int | None
    value: Any


def records(source: Source, members: Callable[[JsonStream], Iterator[Any]], fix: str) -> Iterator[Record | Problem]:
    """The records of a JSON file: one per line, or of lists and objects one after another.

    Args:
        source: the file. Lines are records if its name says so (.jsonl, .ndjson) or its first line is a whole object
            and not alone; then one broken line costs only itself.
        members: takes the object that comes next from the stream and yields the records in it.
        fix: what to do about a broken line.
    """
    if _has_records_in_lines(source):
        for number, line in enumerate((line for line in source.lines() if line.strip()), 1):
            try:
                yield Record(number, source.line, decode(line))
            except json.JSONDecodeError as error:
                yield Problem(f"broken JSON at column {error.colno} ({error.msg})", fix, line=source.line)
        return
    stream = JsonStream(source)
    number = 0
    try:
        while opening := stream.next():
            if opening == "{":
                values = members(stream)
            else:
                values = stream.elements() if opening == "[" else iter([stream.value()])
            for value in values:
                number += 1
                yield Record(number, None, value)
            if opening != "{":
                stream.end()
    except BrokenJsonError as broken:
        yield broken.problem(number + 1)


def _has_records_in_lines(source: Source) -> bool:
    if source.name.lower().endswith((".jsonl", ".ndjson")):
        return True
    first, *rest = re.split(r"[\r\n]+", source.head.strip(), maxsplit=1)
    if not rest or first[:1] == "[":
        return False
    try:
        return isinstance(decode(first), dict)
    except json.JSONDecodeError:
        return False


def under(*keys: str) -> Callable[[JsonStream], Iterator[Any]]:
    """For `records`: the elements of the list that an object has under one of these keys; the object if it has none."""

    def members(stream: JsonStream) -> Iterator[Any]:
        other: dict[str, Any] = {}
        found = False
        for key in stream.members():
            if key in keys and stream.next() == "[":
                found = True
                yield from stream.elements()
            else:
                other[key] = stream.value()
        if not found:
            yield other

    return members

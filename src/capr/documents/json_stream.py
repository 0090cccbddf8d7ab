"""A pull parser for JSON files larger than memory, with the standard library's decoder.

The parser walks into the objects and lists that hold the records and decodes one record at a time. Only one record has
to fit into memory. (ijson cannot replace it: ijson replaces half surrogate pairs by "?", ends the file at one bad byte,
at NaN and at integers beyond 64 bits, and needs memory quadratic in the depth.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from capr.documents.problem import Problem
from capr.documents.source import Source

NOT_BLANK = re.compile(r"[^ \t\r\n]")
MARGIN = 16  # an error this close to the end of the buffer may only mean that the parser must read more


class BrokenJsonError(Exception):
    """The text is not JSON from this line on."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line

    def problem(self, record: int) -> Problem:
        """Return the problem to report. The rest of the file is lost, because nothing marks the next record."""
        fix = "repair or export the file again; the reader stopped at this record"
        return Problem(f"broken JSON ({self})", fix, line=self.line, record=record)


def decode(text: str) -> Any:
    """Decode a JSON value, and turn every failure of the decoder into a `json.JSONDecodeError` with its position.

    Raises:
        json.JSONDecodeError: the text is not JSON, is nested too deeply, or holds a number of too many digits.
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
    """A pull parser: `next` tells what follows; then walk into it, or decode it with `value`.

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
        """Return the next character that is not white space, without consuming it; empty at the end of the file."""
        while True:
            match = NOT_BLANK.search(self._buffer, self._position)
            self._position = match.start() if match else len(self._buffer)
            if self._position < len(self._buffer) or not self._read():
                return self._buffer[self._position : self._position + 1]

    def value(self) -> Any:
        """Decode the next value."""
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
            may_continue = isinstance(value, int | float) and end >= len(self._buffer) - MARGIN
            if may_continue and self._read():
                continue
            self._position += end - start
            return value

    def elements(self) -> Iterator[Any]:
        """Decode and yield the elements of the list that follows."""
        for _ in self._inside("[", "]"):
            yield self.value()

    def walk_elements(self) -> Iterator[None]:
        """Yield once before each element of the list that follows. The caller must consume every element."""
        return self._inside("[", "]")

    def members(self) -> Iterator[str]:
        """Yield the keys of the object that follows. The caller must consume every value."""
        for _ in self._inside("{", "}"):
            if self.next() != '"':
                raise self._broken("Expecting a property name in double quotes", self._position)
            key = self.value()
            self._expect(":")
            yield key

    def end(self) -> None:
        """Raise an error if anything but white space follows."""
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
            actual = repr(self.next()) if self.next() else "the end of the file"
            raise self._broken(f"Expecting {character!r}, not {actual}", self._position)
        self._position += 1

    def _read(self) -> bool:
        """Drop the consumed text and read more. Return whether there was more.

        The rest of the buffer at least doubles, so that the parser decodes a long value only a few times.
        """
        self._line += self._buffer.count("\n", 0, self._position)
        rest = self._buffer[self._position :]
        parts = [rest]
        missing = max(1, len(rest))
        while missing > 0 and not self._ended:
            chunk = next(self._chunks, "")
            self._ended = not chunk
            parts.append(chunk)
            missing -= len(chunk)
        self._buffer, self._position = "".join(parts), 0
        return len(self._buffer) > len(rest)

    def _broken(self, message: str, position: int) -> BrokenJsonError:
        return BrokenJsonError(message, self._line + self._buffer.count("\n", 0, position))


class JsonRecord(NamedTuple):
    """A decoded record.

    Attributes:
        number: the number of the record, counted from 1.
        line: the line of the record, or None in a file that does not hold one record per line.
        value: the decoded JSON.
    """

    number: int
    line: int | None
    value: Any


def records(source: Source, members: Callable[[JsonStream], Iterator[Any]], fix: str) -> Iterator[JsonRecord | Problem]:
    """Yield the records of a JSON file: one per line, or the elements of its lists and objects.

    Args:
        source: the file. Each line is a record if the name ends in .jsonl or .ndjson, or if the first of several lines
            is a complete object; then a broken line costs only its own record.
        members: consumes the object that follows in the stream and yields the records in it.
        fix: what the user can do about a broken line.
    """
    if _has_records_in_lines(source):
        for number, line in enumerate((line for line in source.lines() if line.strip()), 1):
            try:
                yield JsonRecord(number, source.line, decode(line))
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
                yield JsonRecord(number, None, value)
            if opening != "{":
                stream.end()
    except BrokenJsonError as broken:
        yield broken.problem(number + 1)


def _has_records_in_lines(source: Source) -> bool:
    if source.name.lower().endswith((".jsonl", ".ndjson")):
        return True
    first_line, *rest = re.split(r"[\r\n]+", source.head.strip(), maxsplit=1)
    if not rest or first_line[:1] == "[":
        return False
    try:
        return isinstance(decode(first_line), dict)
    except json.JSONDecodeError:
        return False


def values_at(*keys: str) -> Callable[[JsonStream], Iterator[Any]]:
    """Return a `members` function for `records`: it yields the elements of the list under one of these keys.

    It yields the object itself if the object has no such list.
    """

    def members(stream: JsonStream) -> Iterator[Any]:
        other_fields: dict[str, Any] = {}
        has_list = False
        for key in stream.members():
            if key in keys and stream.next() == "[":
                has_list = True
                yield from stream.elements()
            else:
                other_fields[key] = stream.value()
        if not has_list:
            yield other_fields

    return members

"""JSON files larger than memory, value by value, with the standard library's own decoder.

The decoder needs a whole value in memory, but only one: a stream walks into the objects and lists that hold the
records, and decodes each record when it comes to it. (ijson was tried first; it replaces half surrogate pairs by "?",
ends the file at one bad byte, at NaN and at integers beyond 64 bits, and needs memory quadratic in the depth.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from capr.documents.problem import Problem
from capr.documents.source import Source

BLANKS = re.compile(r"[ \t\r\n]*")
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


def decode(text: str) -> Any:  # noqa: ANN401 (any JSON value)
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
            self._position = BLANKS.match(self._buffer, self._position).end()  # type: ignore[union-attr]
            if self._position < len(self._buffer) or not self._read():
                return self._buffer[self._position : self._position + 1]

    def value(self) -> Any:  # noqa: ANN401 (any JSON value)
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


def records(source: Source, *keys: str) -> Iterator[tuple[int, Any] | Problem]:
    """The records of a list, with their numbers from 1: of the list that a file is, or of the one under a key.

    Args:
        source: the file.
        keys: what the list may be called if the file is an object; the other members are passed over.

    Yields:
        A problem if there is no such list, or where the JSON breaks.
    """
    stream = JsonStream(source)
    number = 0
    try:
        if stream.next() == "[":
            for number, value in enumerate(stream.elements(), 1):
                yield number, value
        elif stream.next() == "{":
            found = False
            for key in stream.members():
                if key in keys and stream.next() == "[":
                    found = True
                    for value in stream.elements():
                        number += 1
                        yield number, value
                else:
                    stream.value()
            if not found:
                listed = " or ".join(f"`{key}`" for key in keys)
                yield Problem(f"the JSON has no list called {listed}", "check that --format names the right format")
        else:
            stream.value()
            yield Problem("the JSON is neither an object nor a list", "check that --format names the right format")
        stream.end()
    except BrokenJsonError as broken:
        yield broken.problem(number + 1)

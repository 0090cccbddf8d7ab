"""Records out of JSON files that may be larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ijson
from ijson.common import ObjectBuilder

from capr.documents.problem import Problem
from capr.documents.source import HEAD, Source


class Bytes:
    """What ijson reads from: the source's characters as UTF-8."""

    def __init__(self, source: Source) -> None:
        self._chunks = source.chunks()

    def read(self, size: int) -> bytes:
        """The next piece; ijson asks for no bytes once, to learn the type."""
        return next(self._chunks, "").encode("utf-8", "surrogatepass") if size else b""


def broken_json(error: Exception, record: int) -> Problem:
    """The rest of a JSON file is lost once it breaks: nobody can tell where the next record begins."""
    what = " ".join(str(error).split())[:120]
    fix = "repair or export the file again; the records before this one were read, nothing after it was"
    return Problem(f"broken JSON ({what})", fix, record=record)


def items(source: Source, prefix: str) -> Iterator[tuple[int, Any] | Problem]:
    """Every value at `prefix` (ijson's notation, e.g. `entry.item`) with its number, counted from 1."""
    number = 0
    try:
        for number, value in enumerate(ijson.items(Bytes(source), prefix, use_float=True, buf_size=HEAD), 1):
            yield number, value
    except ijson.JSONError as error:
        yield broken_json(error, number + 1)


def nested_items(source: Source, outer: str, inner: str) -> Iterator[tuple[dict[str, Any], Any] | Problem]:
    """The values of the list `inner` inside each object at `outer`, with that object's simple fields read so far.

    One inner value is in memory at a time, however long its list is.
    """
    fields: dict[str, Any] = {}
    inner_prefix = f"{outer}.{inner}.item"
    builder: ObjectBuilder | None = None
    number = 0
    try:
        for prefix, event, value in ijson.parse(Bytes(source), use_float=True, buf_size=HEAD):
            if builder is not None:
                builder.event(event, value)
                if prefix == inner_prefix and event == "end_map":
                    number += 1
                    yield fields, builder.value
                    builder = None
            elif prefix == inner_prefix and event == "start_map":
                builder = ObjectBuilder()
                builder.event(event, value)
            elif prefix == inner_prefix and event not in ("end_map", "end_array", "map_key"):
                number += 1
                yield fields, value
            elif prefix == outer and event == "start_map":
                fields = {}
            elif prefix.startswith(outer + ".") and event in ("string", "number", "boolean"):
                fields[prefix[len(outer) + 1 :]] = value
    except ijson.JSONError as error:
        yield broken_json(error, number + 1)

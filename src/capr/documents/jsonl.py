"""JSON Lines, and JSON files that hold a list of records, an object of them, or one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from capr.documents.document import Document
from capr.documents.format import Format, Records
from capr.documents.json_stream import BrokenJsonError, JsonStream, decode
from capr.documents.problem import Problem
from capr.documents.records import USUAL_NAMES, document_from, field_names
from capr.documents.source import Source


def read(source: Source) -> Records:
    """One document per line, list element or member; `capr read --json` writes what this reads."""
    if not _has_records_in_lines(source):
        yield from _streamed(source)
        return
    number = 0
    for line in source.lines():
        if not line.strip():
            continue
        number += 1
        try:
            record = decode(line)
        except json.JSONDecodeError as error:
            fix = "write one complete JSON object per line"
            yield Problem(f"broken JSON at column {error.colno} ({error.msg})", fix, line=source.line)
            continue
        yield _document(record, source, number, line=source.line)


def _has_records_in_lines(source: Source) -> bool:
    """By name; else whether the first line is a whole object and not alone."""
    if source.name.lower().endswith((".jsonl", ".ndjson")):
        return True
    first, *rest = re.split(r"[\r\n]+", source.head.strip(), maxsplit=1)
    return first[:1] != "[" and bool(rest) and _decoded(first) is not None


def _streamed(source: Source) -> Records:
    """Values one after another, each a list of records, an object of records by their ids, or a record."""
    stream = JsonStream(source)
    number = 0
    try:
        while opening := stream.next():
            if opening == "[":
                values: Iterator[Any] = stream.elements()
            elif opening == "{":
                values = _members(stream)
            else:
                values = iter([stream.value()])
            for value in values:
                number += 1
                yield _document(value, source, number, line=None)
            if opening == "[":
                stream.end()
    except BrokenJsonError as broken:
        yield broken.problem(number + 1)


def _members(stream: JsonStream) -> Iterator[dict[str, Any]]:
    """The records of an object of records, or the object if it is a record itself."""
    record: dict[str, Any] = {}
    for key in stream.members():
        value = stream.value()
        if isinstance(value, dict) and key != "metadata" and not record:
            yield {"id": key, **value}
        else:
            record[key] = value
    if record:
        yield record


def _document(record: object, source: Source, number: int, line: int | None) -> Document | Problem:
    if not isinstance(record, dict):
        fix = 'write an object with a text, for example {"id": "1", "text": "..."}'
        return Problem(f"the record is {type(record).__name__}, not an object", fix, line=line, record=number)
    document = document_from(record, field_names(list(record), source.columns), source, number)
    return replace(document, line=line, record=number) if isinstance(document, Problem) else document


def _decoded(text: str) -> dict[str, Any] | None:
    try:
        value = decode(text)
    except json.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def recognises(name: str, head: str) -> bool:
    """By name; else by a first line that is an object with a text, so that a note may begin with a brace."""
    if name.endswith((".jsonl", ".ndjson", ".json")):
        return True
    first = _decoded(head.lstrip().partition("\n")[0]) if head.lstrip()[:1] == "{" else None
    return first is not None and bool({key.lower() for key in first} & {*USUAL_NAMES["text"], "sections"})


FORMAT = Format("jsonl", "JSON Lines (or a JSON list): id, text, title, metadata", recognises, read)

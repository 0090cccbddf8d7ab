"""JSON Lines, and JSON files that hold a list of records, an object of them, or one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from capr.documents.document import Document
from capr.documents.format import Format, Records
from capr.documents.json_stream import JsonStream, Record, decode, records
from capr.documents.problem import Problem
from capr.documents.records import USUAL_NAMES, document_from, field_names, json_type
from capr.documents.source import Source


def read(source: Source) -> Records:
    """One document per line, list element or member; `capr read --json` writes what this reads."""
    for record in records(source, _members, fix="write one complete JSON object per line"):
        yield record if isinstance(record, Problem) else _document(record, source)


def _members(stream: JsonStream) -> Iterator[dict[str, Any]]:
    """The records of an object of records, or the object if it is a record itself."""
    record: dict[str, Any] = {}
    of_records = None
    for key in stream.members():
        value = stream.value()
        if of_records is None:
            of_records = isinstance(value, dict) and _has_text(value)
        if of_records and isinstance(value, dict):
            yield {"id": key, **value}
        else:
            record[key] = value
    if record or of_records is None:
        yield record


def _document(record: Record, source: Source) -> Document | Problem:
    value = record.value
    if not isinstance(value, dict):
        fix = 'write an object with a text, for example {"id": "1", "text": "..."}'
        return Problem(f"the record is {json_type(value)}, not an object", fix, line=record.line, record=record.number)
    document = document_from(value, field_names(list(value), source.columns), source, record.number)
    if isinstance(document, Problem):
        return replace(document, line=record.line, record=record.number)
    return document


def _decoded(text: str) -> dict[str, Any] | None:
    try:
        value = decode(text)
    except json.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def recognises(name: str, head: str) -> bool:
    """By name; else by a first object with a text, so that a note may begin with a brace or a bracket."""
    if name.endswith((".jsonl", ".ndjson", ".json")):
        return True
    start = head.lstrip()
    first = _decoded(start.partition("\n")[0]) if start[:1] == "{" else None
    if first is None and "." not in name and re.match(r"\[\s*\{", start):  # a list on standard input
        try:
            first, _ = json.JSONDecoder().raw_decode(start[start.index("{") :])
        except (ValueError, RecursionError):
            return False
    return first is not None and _has_text(first)


def _has_text(record: dict[str, Any]) -> bool:
    return not {key.lower() for key in record}.isdisjoint((*USUAL_NAMES["text"], "sections"))


FORMAT = Format("jsonl", "JSON Lines (or a JSON list): id, text, title, metadata", recognises, read)

"""The reader of JSON Lines, and of JSON files with a list of records, an object of records or a single record."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from capr.documents.dates import OtherDates
from capr.documents.document import Document
from capr.documents.format import Format, Records
from capr.documents.json_stream import JsonRecord, JsonStream, decode, records
from capr.documents.problem import Problem
from capr.documents.records import USUAL_NAMES, document_from, field_names, json_type
from capr.documents.source import Source


def read(source: Source) -> Records:
    """Yield one document per line, list element or member of an object.

    The reader reads the output of `capr read --json`.
    """
    other_dates = OtherDates()
    for record in records(source, _members, fix="write one complete JSON object per line"):
        document = record if isinstance(record, Problem) else _document(record, source)
        if isinstance(document, Document) and isinstance(record, JsonRecord):
            other_dates.add(document.metadata.get("date"), record.line)
        yield document
    if notice := other_dates.notice():
        yield notice


def _members(stream: JsonStream) -> Iterator[dict[str, Any]]:
    """Yield the records of an object of records, or the object itself if it is a record."""
    record: dict[str, Any] = {}
    holds_records = None
    for key in stream.members():
        value = stream.value()
        if holds_records is None:
            holds_records = isinstance(value, dict) and _has_text(value)
        if holds_records and isinstance(value, dict):
            yield {"id": key, **value}
        else:
            record[key] = value
    if record or holds_records is None:
        yield record


def _document(record: JsonRecord, source: Source) -> Document | Problem:
    value = record.value
    if not isinstance(value, dict):
        fix = 'write an object with a text, for example {"id": "1", "text": "..."}'
        return Problem(f"the record is {json_type(value)}, not an object", fix, line=record.line, record=record.number)
    document = document_from(value, field_names(list(value), source.columns), source, record.number)
    if isinstance(document, Problem):
        return replace(document, line=record.line, record=record.number)
    return document


def _decode_object(text: str) -> dict[str, Any] | None:
    try:
        value = decode(text)
    except json.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def recognises(name: str, head: str) -> bool:
    """Check the name, or else look for a first object with a text: a note may also begin with a brace or a bracket."""
    if name.endswith((".jsonl", ".ndjson", ".json")):
        return True
    start = head.lstrip()
    record = _decode_object(start.partition("\n")[0]) if start[:1] == "{" else None
    if record is None and "." not in name and re.match(r"\[\s*\{", start):  # a list on standard input
        try:
            record, _ = json.JSONDecoder().raw_decode(start[start.index("{") :])
        except (ValueError, RecursionError):
            return False
    return record is not None and _has_text(record)


def _has_text(record: dict[str, Any]) -> bool:
    return not {key.lower() for key in record}.isdisjoint((*USUAL_NAMES["text"], "sections"))


FORMAT = Format("jsonl", "JSON Lines (or a JSON list): id, text, title, metadata", recognises, read)

"""JSON Lines, and JSON files that hold one list of records."""

from __future__ import annotations

import json

from capr.documents.document import Document
from capr.documents.format import Format, Records
from capr.documents.json_stream import items
from capr.documents.problem import Problem
from capr.documents.records import document_from, field_names
from capr.documents.source import Source


def read(source: Source) -> Records:
    """One document per line or list element; `capr read --json` writes what this reads."""
    if source.head.lstrip()[:1] == "[":
        yield from _list(source)
        return
    lines = ((source.line, line) for line in source.lines() if line.strip())
    if source.name.lower().endswith(".json") and not _is_json(source.head.lstrip().split("\n", 1)[0]):
        kept = list(lines)  # one JSON value over many lines
        whole = "".join(line for _, line in kept)
        if _is_json(whole):
            yield from _whole(json.loads(whole), source)
            return
        lines = (pair for pair in kept)
    for number, (line_number, line) in enumerate(lines, 1):
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            fix = "write one complete JSON object per line"
            yield Problem(f"broken JSON at column {error.colno} ({error.msg})", fix, line=line_number)
            continue
        yield _document(record, source, number, line=line_number)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return False
    return True


def _whole(value: object, source: Source) -> Records:
    """A file that is one record, or an object of records by their ids."""
    if isinstance(value, dict) and value and all(isinstance(record, dict) for record in value.values()):
        for number, (identifier, record) in enumerate(value.items(), 1):
            yield _document({"id": identifier, **record}, source, number, line=None)
    else:
        yield _document(value, source, 1, line=1)


def _list(source: Source) -> Records:
    for item in items(source, "item"):
        if isinstance(item, Problem):
            yield item
        else:
            yield _document(item[1], source, item[0], line=None)


def _document(record: object, source: Source, number: int, line: int | None) -> Document | Problem:
    if not isinstance(record, dict):
        fix = 'write an object with a text, for example {"id": "1", "text": "..."}'
        return Problem(f"the record is {type(record).__name__}, not an object", fix, line=line, record=number)
    document = document_from(record, field_names(list(record), source.columns), source, number)
    if isinstance(document, Problem):
        return Problem(document.fact, document.fix, line=line, record=number)
    return document


def recognises(name: str, head: str) -> bool:
    return (
        name.endswith((".jsonl", ".ndjson", ".json")) or head.lstrip()[:1] == "{" or head.lstrip()[:2] == "[{"
    )


FORMAT = Format("jsonl", "JSON Lines (or a JSON list): id, text, title, metadata", recognises, read)

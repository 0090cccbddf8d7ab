"""Tables of names that users add to the vocabulary."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from capr.annotate.concept import Concept
from capr.documents import CaprError
from capr.text.names import key

COLUMNS = ("code", "name", "synonyms", "kind", "codes")  # code and name are required


def read_table(path: str | Path) -> list[Concept]:
    """Read the concepts of a user's table: TSV if its name ends in `.tsv`, else CSV.

    Raises:
        CaprError: the file is not such a table, or rows are invalid; the message lists all of them.
    """
    path = Path(path)
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CaprError(f"{path}: cannot be read ({error}). Fix: name a CSV file in UTF-8.") from error
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    concepts: dict[str, Concept] = {}
    lines: dict[str, int] = {}
    problems = []
    try:
        columns = [column.strip().lower() for column in rows.fieldnames or ()]
        rows.fieldnames = columns
        if not {"code", "name"} <= set(columns) <= set(COLUMNS) or len(set(columns)) < len(columns):
            fix = f"begin with a line such as {','.join(COLUMNS[:3])}; {' and '.join(COLUMNS[3:])} may follow"
            raise CaprError(f"{path}, line 1: the columns are {', '.join(columns) or 'missing'}. Fix: {fix}.")
        for row in rows:
            concept = Concept(
                _column(row, "code"),
                _column(row, "kind") or "term",
                _column(row, "name"),
                _items(row, "synonyms"),
                _items(row, "codes"),
            )
            problem = _problem(row, concept, lines)
            if problem:
                problems.append(f"{path}, line {rows.line_num}: {problem}.")
            else:
                concepts[concept.code], lines[concept.code] = concept, rows.line_num
    except csv.Error as error:
        problems.append(f"{path}, line {rows.reader.line_num}: not CSV ({error}). Fix: close the quotes.")
    if problems:
        raise CaprError("\n".join(problems))
    return list(concepts.values())


def _problem(row: Mapping[str | None, Any], concept: Concept, lines: Mapping[str, int]) -> str:
    """Return why a row is invalid and how to correct it; empty if it is valid."""
    if row.get(None):
        return "it has more fields than the first line. Fix: put quotes around a field with a comma in it"
    if not concept.code:
        return f"{concept.name or 'the row'!r} has no code. Fix: give it one, such as a code of your own: LOCAL:1"
    if not concept.name:
        return f"{concept.code} has no name. Fix: write its preferred name"
    if concept.code in lines:
        line = lines[concept.code]
        return f"the code {concept.code} is already in line {line}. Fix: make them one row, and separate synonyms by |"
    if not all(key(name) for name in concept.names):
        return f"{concept.code} has a name without a letter or digit. Fix: write the words as in your texts"
    return ""


def _column(row: Mapping[str, str | None], name: str) -> str:
    return (row.get(name) or "").strip()


def _items(row: Mapping[str, str | None], name: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in (row.get(name) or "").split("|") if item.strip())

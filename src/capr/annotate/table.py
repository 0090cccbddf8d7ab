"""Tables of names that users add to the vocabulary."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from capr.annotate.concept import Concept
from capr.annotate.names import key
from capr.documents import CaprError

COLUMNS = ("code", "name", "synonyms", "kind", "codes")  # code and name are needed


def read_table(path: str | Path) -> list[Concept]:
    """The concepts of a user's table (CSV, or TSV by its name); every row that is wrong is named."""
    path = Path(path)
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CaprError(f"{path}: cannot be read ({error}). Fix: name a CSV file in UTF-8.") from error
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    found: dict[str, Concept] = {}
    lines: dict[str, int] = {}
    problems = []
    try:
        given = [column.strip().lower() for column in rows.fieldnames or ()]
        rows.fieldnames = given
        if not {"code", "name"} <= set(given) <= set(COLUMNS) or len(set(given)) < len(given):
            fix = f"begin with a line such as {','.join(COLUMNS[:3])}; {' and '.join(COLUMNS[3:])} may follow"
            raise CaprError(f"{path}, line 1: the columns are {', '.join(given) or 'missing'}. Fix: {fix}.")
        for row in rows:
            concept = Concept(
                _column(row, "code"), _column(row, "kind") or "term", _column(row, "name"),
                _trimmed(row, "synonyms"), _trimmed(row, "codes"),
            )  # fmt: skip
            fact = _wrong(row, concept, lines)
            if fact:
                problems.append(f"{path}, line {rows.line_num}: {fact}.")
            else:
                found[concept.code], lines[concept.code] = concept, rows.line_num
    except csv.Error as error:
        problems.append(f"{path}, line {rows.reader.line_num}: not CSV ({error}). Fix: close the quotes.")
    if problems:
        raise CaprError("\n".join(problems))
    return list(found.values())


def _wrong(row: Mapping[str | None, Any], concept: Concept, lines: Mapping[str, int]) -> str:
    if row.get(None):
        return "it has more fields than the first line. Fix: put quotes around a field with a comma in it"
    if not concept.code:
        return f"{concept.name or 'the row'!r} has no code. Fix: give it one, of your own if need be, such as LOCAL:1"
    if not concept.name:
        return f"{concept.code} has no name. Fix: write its preferred name"
    if concept.code in lines:
        line = lines[concept.code]
        return f"the code {concept.code} is already in line {line}. Fix: make them one row, with | between synonyms"
    if not all(key(name) for name in concept.names):
        return f"{concept.code} has a name without a letter or digit. Fix: write the words that stand in texts"
    return ""


def _column(row: Mapping[str, str | None], name: str) -> str:
    return (row.get(name) or "").strip()


def _trimmed(row: Mapping[str, str | None], name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in (row.get(name) or "").split("|") if part.strip())

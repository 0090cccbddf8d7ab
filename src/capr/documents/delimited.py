"""Tables: CSV and TSV with a header line, one document per row."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from capr.documents.format import Format, Records
from capr.documents.problem import Problem
from capr.documents.records import FieldNames, document_from, field_names, missing_field
from capr.documents.source import Source

LARGEST_FIELD = 64 << 20  # a quote that is never closed would otherwise swallow the rest of the file


class Row(NamedTuple):
    """A row by the names of its columns, and the line that it starts in."""

    number: int
    line: int
    values: dict[str, str]


def rows(source: Source) -> Iterator[Row | Problem]:
    """The rows of a table, read in constant memory; line ends inside quoted fields are kept as they are."""
    csv.field_size_limit(LARGEST_FIELD)
    delimiter = delimiter_of(source.head)
    table = csv.reader(source.lines(), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    number = 0
    while True:
        line = source.line + 1
        try:
            row = next(table)
        except StopIteration:
            return
        except csv.Error as error:
            number += 1
            fix = 'double the quotes inside a quoted field ("") and close every quoted field'
            yield Problem(f"lines {line} to {source.line} are not a row ({error})", fix, line=line, record=number)
            continue
        if not row:
            continue
        if header is None:
            header = row
            if repeated := [name for name, count in Counter(row).items() if count > 1]:
                fix = "give each column a name of its own"
                yield Problem(f"two columns are called {repeated[0]!r}", fix, line=line)
                return
            continue
        number += 1
        if len(row) != len(header):
            fact = f"the row has {len(row)} columns, the header has {len(header)}"
            fix = f"quote fields that hold a {delimiter!r}, a quote or a line end"
            yield Problem(fact, fix, line=line, record=number)
            continue
        yield Row(number, line, dict(zip(header, row, strict=True)))


def delimiter_of(head: str) -> str:
    """The comma, tab, semicolon or bar: whichever stands most often in the header line."""
    header = re.sub(r'"[^"]*"', "", re.split(r"[\r\n]", head, maxsplit=1)[0])
    return max(",", "\t", ";", "|", key=header.count)


def read(source: Source) -> Records:
    """One document per row, by the column mapping; the other columns become metadata."""
    fields: FieldNames | None = None
    for row in rows(source):
        if isinstance(row, Problem):
            yield row
            continue
        if fields is None:
            names = list(row.values)
            fields = field_names(names, source.columns)
            unknown = [field for field in source.columns if field not in fields]
            if "text" not in fields or unknown:
                for field in unknown or ["text"]:
                    yield replace(missing_field(field, names, source.columns), line=1)
                return
        document = document_from(row.values, fields, source, row.number)
        if isinstance(document, Problem):
            document = replace(document, line=row.line, record=row.number)
        yield document


def recognises(name: str, head: str) -> bool:
    """By name; a file without an ending (standard input), by a header line that names a text and something else."""
    if name.endswith((".csv", ".tsv", ".tab")):
        return True
    if "." in name:
        return False
    header = re.split(r"[\r\n]", head, maxsplit=1)[0]
    names = [column.strip(' "') for column in header.split(delimiter_of(head))]
    return len(names) > 1 and "text" in field_names(names, {})


FORMAT = Format("csv", "CSV or TSV with a header, by column mapping", recognises, read)

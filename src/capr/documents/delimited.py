"""The reader of tables: CSV and TSV with a header line, one document per row."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from capr.documents.dates import OtherDates
from capr.documents.format import Format, Records
from capr.documents.problem import Problem
from capr.documents.records import FieldNames, document_from, field_names, missing_field
from capr.documents.similar_names import near_name_notices
from capr.documents.source import Source

MAX_FIELD = 64 << 20  # characters; without a limit, an open quote would swallow the rest of the file


class Row(NamedTuple):
    """A row of a table.

    Attributes:
        number: the number of the row, counted from 1 after the header.
        line: the line in which the row begins.
        values: the values by column name.
    """

    number: int
    line: int
    values: dict[str, str]


def rows(source: Source) -> Iterator[Row | Problem]:
    """Yield the rows of a table, in constant memory. Quoted fields keep their line ends."""
    csv.field_size_limit(MAX_FIELD)
    delimiter = find_delimiter(source.head)
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
            if repeated_names := [name for name, count in Counter(row).items() if count > 1]:
                fix = "give each column its own name"
                yield Problem(f"two columns are named {repeated_names[0]!r}", fix, line=line)
                return
            continue
        number += 1
        if len(row) != len(header):
            fact = f"the row has {len(row)} columns, the header has {len(header)}"
            fix = f"quote fields that hold a {delimiter!r}, a quote or a line end"
            yield Problem(fact, fix, line=line, record=number)
            continue
        yield Row(number, line, dict(zip(header, row, strict=True)))


def find_delimiter(head: str) -> str:
    """Return the most frequent of comma, tab, semicolon and bar in the header line."""
    header = re.sub(r'"[^"]*"', "", re.split(r"[\r\n]", head, maxsplit=1)[0])
    return max(",", "\t", ";", "|", key=header.count)


def read(source: Source) -> Records:
    """Yield one document per row, by the column mapping. The other columns become metadata."""
    fields: FieldNames | None = None
    other_dates = OtherDates()
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
            yield from near_name_notices(fields, names, may_map=True)
        document = document_from(row.values, fields, source, row.number)
        if isinstance(document, Problem):
            document = replace(document, line=row.line, record=row.number)
        else:
            other_dates.add(document.metadata.get("date"), row.line)
        yield document
    if notice := other_dates.notice():
        yield notice


def recognises(name: str, head: str) -> bool:
    """Check the file extension. Standard input has none and needs a header with a text column and another column."""
    if name.endswith((".csv", ".tsv", ".tab")):
        return True
    if "." in name:
        return False
    header = re.split(r"[\r\n]", head, maxsplit=1)[0]
    names = [column.strip(' "') for column in header.split(find_delimiter(head))]
    return len(names) > 1 and "text" in field_names(names, {})


FORMAT = Format("csv", "CSV or TSV with a header, by column mapping", recognises, read)

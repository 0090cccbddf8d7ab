"""`capr read`: read documents."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich import box
from rich.cells import cell_len
from rich.table import Table

from capr.cli import inputs
from capr.cli.options import expand_options

COLUMNS = {"id": 32, "patient": 9, "date": 10, "type": 18, "chars": 15}  # with their largest widths
SHORTEST = 8  # of an id or a type in a narrow terminal
GAPS = 14  # characters of a line between and around the columns


@expand_options
def command(
    sources: inputs.DocumentOptions,
    as_json: inputs.Json = False,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Number of documents in the table; 0 for all.")] = 20,
) -> None:
    """Read documents of any format, and print a table of them, or JSON Lines.

    Example: capr read notes/ discharge.csv.gz --json > documents.jsonl
    """
    source = sources.read()
    if as_json:
        for document in source.documents():
            sys.stdout.write(json.dumps(document.as_json(), ensure_ascii=False) + "\n")
        source.finish()
        return
    rows: list[list[str]] = []
    for document in source.documents():
        if not limit or source.reading.documents <= limit:
            cells = [str(document.metadata.get(name, "")) for name in ("patient", "date", "type")]
            cells[1] = cells[1][:10]  # the date without the time
            rows.append([document.id, *cells, f"{len(document.text):,}"])
    console = inputs.terminal()
    reading = source.reading
    if reading.documents:
        console.print(_table(rows, console.width))
    if limit and reading.documents > limit:
        console.print(f"... and {reading.documents - limit:,} more (--limit 0 shows all)")
    formats = ", ".join(f"{count:,} {name}" for name, count in reading.formats.most_common() if count)
    replaced = f", {reading.replaced:,} of them replacing an earlier one" if reading.replaced else ""
    count, length = inputs.quantity(reading.documents, "document"), inputs.quantity(reading.characters, "character")
    console.print(f"{count}{replaced}, {length} ({formats or 'nothing'})", soft_wrap=True)
    source.finish()


def _table(rows: list[list[str]], width: int) -> Table:
    """Return the table. In a narrow terminal, ids and types are shortened, never a date."""
    widths = [
        min(limit, max(cell_len(row[column]) for row in (list(COLUMNS), *rows)))
        for column, limit in enumerate(COLUMNS.values())
    ]
    for _ in range(sum(widths) + GAPS - width):
        longest = max((0, 3), key=lambda column: widths[column])
        widths[longest] = max(SHORTEST, widths[longest] - 1)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, column_width in zip(COLUMNS, widths, strict=True):
        table.add_column(name, justify="right" if name == "chars" else "left", no_wrap=True, width=column_width)
    for row in rows:
        table.add_row(*row)
    return table

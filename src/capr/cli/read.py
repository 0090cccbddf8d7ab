"""`capr read`: what is in these files?"""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from capr.cli import inputs


def command(
    files: inputs.Files,
    format: inputs.Format = None,
    column: inputs.Column = None,
    strict: inputs.Strict = False,
    replace: inputs.Replace = False,
    as_json: inputs.Json = False,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Documents shown in the table; 0 for all.")] = 20,
) -> None:
    """Read documents of any format; show what was found, or print them as JSON Lines.

    Example: capr read notes/ discharge.csv.gz --json > documents.jsonl
    """
    source = inputs.Documents(files, format, column, strict, replace)
    if as_json:
        for document in source.documents():
            sys.stdout.write(json.dumps(document.as_json(), ensure_ascii=False) + "\n")
        source.finish()
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, width in (("id", 32), ("patient", 9), ("date", 10), ("type", 18)):
        table.add_column(name, no_wrap=True, max_width=width)
    table.add_column("chars", justify="right", no_wrap=True)
    for document in source.documents():
        if not limit or source.reading.documents <= limit:
            shown = [str(document.metadata.get(name, "")) for name in ("patient", "date", "type")]
            shown[1] = shown[1][:10]  # the day
            table.add_row(document.id, *shown, f"{len(document.text):,}")
    console = inputs.terminal()
    reading = source.reading
    if reading.documents:
        console.print(table)
    if limit and reading.documents > limit:
        console.print(f"... and {reading.documents - limit:,} more (--limit 0 shows all)")
    formats = ", ".join(f"{count:,} {name}" for name, count in reading.formats.most_common() if count)
    replaced = f", {reading.replaced:,} of them replacing an earlier one" if reading.replaced else ""
    count, length = inputs.counted(reading.documents, "document"), inputs.counted(reading.characters, "character")
    console.print(f"{count}{replaced}, {length} ({formats or 'nothing'})", soft_wrap=True)
    source.finish()

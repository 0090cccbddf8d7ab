"""`capr stats`: count the contents of a library."""

from __future__ import annotations

from typing import Annotated

import typer
from rich import box
from rich.table import Table

from capr.cli import inputs
from capr.cli.results import show_json
from capr.search import Library


def command(
    library: inputs.LibraryLocation,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Count the contents of a library, and list the fields to filter by.

    Example: capr stats library
    """
    with Library(library) as opened:
        stats = opened.stats()
    if as_json:
        show_json(stats.as_json())
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    for name in ("documents", "patients", "passages", "characters", "mentions", "vectors"):
        table.add_row(name, f"{getattr(stats, name):,}")
    if stats.discourse is not None:
        table.add_row("sentence vectors", f"{stats.sentences:,}")
    if stats.piece_vectors:
        table.add_row("word-piece vectors", f"{stats.piece_vectors:,}")
    for part, size in stats.disk.items():
        table.add_row(f"disk: {part}", f"{size / 1e6:,.1f} MB")
    console = inputs.terminal()
    console.print(table)
    encoder = stats.encoder
    console.print(f"encoder: {f'{encoder.name} ({encoder.dimensions} dimensions)' if encoder else 'none'}")
    if stats.discourse is not None:
        console.print(f"discourse: {stats.discourse.name} ({stats.discourse.dimensions} dimensions)")
    fields = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    fields.add_column("field")
    fields.add_column("documents", justify="right")
    for name, count in stats.fields.items():
        fields.add_row(inputs.printable(name), f"{count:,}")
    if stats.fields:
        console.print(fields)

"""`capr suggest`: which concept does this beginning of a name mean?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from capr.annotate.vocabulary import Vocabulary
from capr.cli import inputs


def command(
    typed: Annotated[str, typer.Argument(metavar="NAME", help="The beginning of a name, as it is typed.")],
    limit: Annotated[int, typer.Option("--limit", min=1, help="Concepts shown, at most.")] = 10,
    vocabulary: Annotated[
        list[Path] | None,
        typer.Option("--vocabulary", metavar="CSV", help="Add names of your own: code, name, synonyms."),
    ] = None,
    as_json: inputs.Json = False,
) -> None:
    """Complete the name of a disease, symptom or drug; one typing error does no harm.

    Example: capr suggest "heart att"
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("name", "means", "kind", "code"):
        table.add_column(column, overflow="fold")
    found = Vocabulary.load(*vocabulary or ()).suggest(typed, limit)
    for name, concept in found:
        if as_json:
            print(json.dumps({"name": name, "kind": concept.kind, "concept": concept.as_json()}, ensure_ascii=False))
        else:
            table.add_row(name, concept.name, concept.kind, concept.code)
    if not as_json:
        console = inputs.terminal()
        console.print(table if found else f"No name begins like {typed!r}.")
    if not found:
        raise typer.Exit(1)

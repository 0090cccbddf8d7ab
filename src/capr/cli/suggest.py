"""`capr suggest`: complete the name of a concept."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from capr.annotate.vocabulary import Vocabulary
from capr.cli import inputs
from capr.documents import CaprError


def command(
    prefix: Annotated[str, typer.Argument(metavar="NAME", help="The beginning of a name.")],
    k: Annotated[int, typer.Option("-k", min=1, help="Maximum number of completions.")] = 10,
    vocabulary: inputs.VocabularyTables = None,
    as_json: inputs.Json = False,
) -> None:
    """Complete the name of a disease, symptom or drug, despite one typing error.

    Example: capr suggest "heart att"
    """
    if not prefix.strip():
        raise CaprError('there is no prefix to complete. Fix: write the beginning of a name, such as "heart att".')
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("name", "means", "kind", "code"):
        table.add_column(column, overflow="fold")
    completions = Vocabulary.load(*vocabulary or ()).suggest(prefix, k)
    for name, concept in completions:
        if as_json:
            print(json.dumps({"name": name, "kind": concept.kind, "concept": concept.as_json()}, ensure_ascii=False))
        else:
            table.add_row(name, concept.name, concept.kind, concept.code)
    if not as_json:
        console = inputs.terminal()
        console.print(table if completions else f"No name begins with {prefix!r}.")
    if not completions:
        raise typer.Exit(1)

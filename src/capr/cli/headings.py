"""`capr headings`: which headings do these documents have, and how often?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from capr.cli import inputs
from capr.segment import HeadingCounts


def command(
    files: inputs.Files,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="COUNTS", help="Save them for `capr segment --headings`."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Headings shown; 0 for all.")] = 20,
    format: inputs.Format = None,
    column: inputs.Column = None,
    strict: inputs.Strict = False,
    replace: inputs.Replace = False,
    as_json: inputs.Json = False,
) -> None:
    """Count the headings of a set of documents.

    With a threshold the counts decide which headings open a section, in place of the built-in lexicon.

    Example: capr headings notes/ -o counts.json
    """
    if output is not None and output.exists():
        HeadingCounts.load(output)  # anything else is not overwritten
    source = inputs.Documents(files, format, column, strict, replace)
    counts = HeadingCounts.learn(source.documents())
    if output is not None:
        counts.save(output)
    console = inputs.terminal()
    shown = counts.most_common(limit or None)
    for heading, count in shown:
        if as_json:
            print(json.dumps({"heading": heading, "count": count}, ensure_ascii=False))
        else:
            console.print(f"{count:7,}  {heading}")
    if not as_json:
        where = f", saved to {output}" if output is not None else ""
        found, documents = inputs.counted(len(counts), "heading"), inputs.counted(source.reading.documents, "document")
        console.print(f"{found} in {documents}{where}", soft_wrap=True)
    source.finish()

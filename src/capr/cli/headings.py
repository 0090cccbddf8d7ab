"""`capr headings`: count the headings of documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from capr.cli import inputs
from capr.cli.options import expand_options
from capr.segment import HeadingCounts


@expand_options
def command(
    sources: inputs.DocumentOptions,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="COUNTS", help="Save the counts for `capr segment --headings`."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Number of headings to print; 0 for all.")] = 20,
    as_json: inputs.Json = False,
) -> None:
    """Count the headings of a set of documents.

    With a threshold, the counts can replace the built-in lexicon of headings that begin a section.

    Example: capr headings notes/ -o counts.json
    """
    if output is not None and output.exists():
        HeadingCounts.load(output)  # fails if the file holds anything but counts, so that it is not overwritten
    source = sources.read()
    counts = HeadingCounts.learn(source.documents())
    if output is not None:
        counts.save(output)
    console = inputs.terminal()
    top = counts.most_common(limit or None)
    for heading, count in top:
        if as_json:
            print(json.dumps({"heading": heading, "count": count}, ensure_ascii=False))
        else:
            console.print(f"{count:7,}  {heading}")
    if not as_json:
        saved = f", saved to {output}" if output is not None else ""
        headings = inputs.quantity(len(counts), "heading")
        documents = inputs.quantity(source.reading.documents, "document")
        console.print(f"{headings} in {documents}{saved}", soft_wrap=True)
    source.finish()

"""`capr verify`: check a library for damage."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from capr.cli import inputs
from capr.cli.results import show_json
from capr.search import Library


def command(
    library: inputs.LibraryLocation,
    repair: Annotated[bool, typer.Option("--repair", help="Rebuild a damaged index from the documents.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check every text, span, vector and index of a library. The exit code is 1 if there is a problem.

    Example: capr verify library
    """
    with Library(library) as opened, inputs.progress("documents") as report_progress:
        check = opened.verify(repair, report_progress)
    if as_json:
        show_json(asdict(check))
    else:
        console = inputs.terminal()
        for problem in check.problems:
            console.print(problem, soft_wrap=True)
        for notice in check.notices:
            console.print(f"Notice: {notice}", soft_wrap=True)
        for name in check.repaired:
            dropped = f"damaged {name} were dropped; capr encode makes new ones"
            console.print(dropped if name.startswith("vectors of") else f"{name} was rebuilt")
        names = ("documents", "passages", "sentences", "mentions", "vectors")
        counts = ", ".join(inputs.quantity(getattr(check, name), name.removesuffix("s")) for name in names)
        if check.sentence_vectors:
            counts += f", {inputs.quantity(check.sentence_vectors, 'sentence vector')}"
        result = inputs.quantity(len(check.problems), "problem") if check.problems else "no problems found"
        console.print(f"{counts}: {result}", soft_wrap=True)
    if check.problems:
        raise typer.Exit(1)

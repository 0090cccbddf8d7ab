"""`capr verify`: is everything in a library as it should be?"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from capr.cli import inputs
from capr.search import Library


def command(
    library: inputs.LibraryFolder,
    repair: Annotated[bool, typer.Option("--repair", help="Make a damaged index again from the documents.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check every text, span, vector and index of a library. The exit code is 1 if something is wrong.

    Example: capr verify library
    """
    with Library(library) as kept, inputs.progress("documents") as tell:
        check = kept.verify(repair, tell)
    if as_json:
        sys.stdout.write(json.dumps(asdict(check), ensure_ascii=False) + "\n")
    else:
        console = inputs.terminal()
        for problem in check.problems:
            console.print(problem, soft_wrap=True)
        for notice in check.notices:
            console.print(f"Note: {notice}", soft_wrap=True)
        for name in check.repaired:
            dropped = "were dropped, those that are damaged; capr encode makes them again"
            console.print(f"{name} {dropped if name.startswith('vectors of') else 'was made again'}")
        names = ("documents", "passages", "sentences", "mentions", "vectors")
        counts = ", ".join(inputs.counted(getattr(check, name), name.removesuffix("s")) for name in names)
        if check.sentence_vectors:
            counts += f", {inputs.counted(check.sentence_vectors, 'sentence vector')}"
        wrong = inputs.counted(len(check.problems), "problem") if check.problems else "all is well"
        console.print(f"{counts}: {wrong}", soft_wrap=True)
    if check.problems:
        raise typer.Exit(1)

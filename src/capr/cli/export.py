"""`capr export`: the documents of a library, as they were added."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from capr.cli import inputs
from capr.documents import CaprError
from capr.search import Library


def command(
    library: inputs.LibraryFolder,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="JSON Lines to write; - is standard output.")
    ] = "-",
    filter: inputs.Filter = None,
) -> None:
    """Write documents as JSON Lines, which `capr index` and `capr read` read back to equal documents.

    Example: capr export library -o documents.jsonl
    """
    with Library(library) as kept:
        if output == "-":
            for document in kept.documents(filter):
                sys.stdout.write(json.dumps(document.as_json(), ensure_ascii=False, default=str) + "\n")
            return
        target = Path(output)
        if target.exists():
            raise CaprError(f"{target} is there already. Fix: name another file.")
        part = target.with_name(target.name + ".part")
        count = 0
        with part.open("w", encoding="utf-8") as file:
            for document in kept.documents(filter):
                count += 1
                file.write(json.dumps(document.as_json(), ensure_ascii=False, default=str) + "\n")
        part.replace(target)
    inputs.terminal().print(f"{inputs.counted(count, 'document')} in {target}")

"""`capr export`: the documents of a library, as they were added."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from capr.cli import inputs
from capr.documents import CaprError
from capr.index.digest import as_text
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
        lines = (as_text(document.as_json()) + "\n" for document in kept.documents(filter))
        if output == "-":
            sys.stdout.writelines(lines)
            return
        target = Path(output)
        if target.exists():
            raise CaprError(f"{target} is there already. Fix: name another file.")
        part = target.with_name(f"{target.name}.{os.getpid()}.part")
        count = 0
        try:
            with part.open("w", encoding="utf-8") as file:
                for line in lines:
                    file.write(line)
                    count += 1
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    inputs.terminal().print(f"{inputs.counted(count, 'document')} in {target}")

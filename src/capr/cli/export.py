"""`capr export`: write the documents of a library."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from capr.cli import inputs
from capr.documents import CaprError
from capr.search import Library
from capr.search.conditions import unknown_value_notices, unmatched_filter_notices
from capr.text.digest import as_text


def command(
    library: inputs.LibraryLocation,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="JSON Lines to write; - is standard output.")
    ] = "-",
    filter: inputs.Filter = None,
) -> None:
    """Write documents as JSON Lines, which `capr index` and `capr read` read back to equal documents.

    The exit code is 1 if there is no document to export.

    Example: capr export library -o documents.jsonl
    """
    count = 0
    with Library(library) as opened:

        def lines() -> Iterator[str]:
            nonlocal count
            for document in opened.documents(filter):
                count += 1
                yield as_text(document.as_json()) + "\n"

        if output == "-":
            sys.stdout.writelines(lines())
        else:
            _write(Path(output), lines())
        notices = _notices(opened, filter, count)
    if output != "-":
        inputs.terminal().print(f"{inputs.quantity(count, 'document')} in {output}")
    for notice in notices:
        inputs.terminal(stderr=True).print(f"Notice: {inputs.printable(notice)}")
    if not count:
        raise typer.Exit(1)


def _notices(library: Library, filter: list[str] | None, count: int) -> list[str]:
    """Return why there was nothing to export, or which values of the filters no document has."""
    if not filter:
        return [] if count else ["the library has no documents"]
    filters = library.resources.filters(filter)
    if count:
        return list(unknown_value_notices(filters, library.index))
    return ["no document matches the filters", *unmatched_filter_notices(filters, library.index)]


def _write(target: Path, lines: Iterable[str]) -> None:
    if target.exists():
        raise CaprError(f"{target} exists already. Fix: name another file, or remove it first.")
    partial_file = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with partial_file.open("w", encoding="utf-8") as file:
            file.writelines(lines)
        partial_file.replace(target)
    except OSError as error:
        error.filename = str(target)  # the user does not know the partial file
        raise
    finally:
        partial_file.unlink(missing_ok=True)

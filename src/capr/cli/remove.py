"""`capr remove`: take documents out of a library."""

from __future__ import annotations

from typing import Annotated

import typer

from capr.cli import inputs
from capr.documents import CaprError
from capr.search import Library


def command(
    library: inputs.LibraryFolder,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Documents to remove.")] = None,
    filter: inputs.Filter = None,
) -> None:
    """Remove documents by their ids, or all that pass the filters.

    They cannot be found any more at once; the room is freed by `capr compact`.

    Example: capr remove library --filter patient=p10
    """
    if not ids and not filter:
        raise CaprError("nothing is named that could be removed. Fix: name ids, or documents with --filter.")
    with Library(library) as kept:
        removed = kept.remove(ids or (), filters=filter)
    inputs.terminal().print(f"{inputs.counted(removed, 'document')} removed")
    missing = len(set(ids or ())) - removed
    if ids and not filter and missing > 0:
        inputs.terminal(stderr=True).print(f"{inputs.counted(missing, 'id')} not found in {library}.")
        raise typer.Exit(1)

"""`capr remove`: take documents out of a library."""

from __future__ import annotations

from typing import Annotated

import typer

from capr.cli import inputs
from capr.documents import CaprError
from capr.index import Filters
from capr.index.filters import clean
from capr.search import Library
from capr.search.conditions import passed_by_none


def command(
    library: inputs.LibraryFolder,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Documents to remove.")] = None,
    filter: inputs.Filter = None,
) -> None:
    """Remove documents by their ids, or all that pass the filters.

    From then on they cannot be found; the room is freed by `capr compact`. Many ids: --filter document=@FILE, with one
    on each line. The exit code is 1 if there is no such document.

    Example: capr remove library --filter patient=p10
    """
    if not ids and not filter:
        raise CaprError("nothing is named that could be removed. Fix: name ids, or documents with --filter.")
    wanted = [clean(id) for id in ids or ()]
    with Library(library) as kept:
        known = kept.index.digests(wanted)
        removed = kept.remove(wanted, filters=filter or None)
        told = [f"{library} has no document {id!r}." for id in dict.fromkeys(wanted) if id not in known]
        if filter and not removed:
            told += [f"{fact}." for fact in passed_by_none(Filters.of(filter), kept.index)]
    inputs.terminal().print(f"{inputs.counted(removed, 'document')} removed")
    for fact in told:
        inputs.terminal(stderr=True).print(inputs.printable(fact))
    if told:
        raise typer.Exit(1)

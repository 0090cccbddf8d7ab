"""`capr remove`: remove documents from a library."""

from __future__ import annotations

from typing import Annotated

import typer

from capr.cli import inputs
from capr.documents import CaprError
from capr.index import Filters
from capr.index.filters import clean
from capr.search import Library
from capr.search.conditions import unmatched_filter_notices


def command(
    library: inputs.LibraryLocation,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Documents to remove.")] = None,
    filter: inputs.Filter = None,
) -> None:
    """Remove documents by their ids, or all documents that match the filters.

    A removed document is no longer found; `capr compact` frees its space. For many ids, write --filter document=@FILE
    with one id on each line. The exit code is 1 if there is no such document.

    Example: capr remove library --filter patient=p10
    """
    if not ids and not filter:
        raise CaprError("no documents selected. Fix: give document ids or --filter.")
    document_ids = [clean(id) for id in ids or ()]
    with Library(library) as opened:
        existing = opened.index.digests(document_ids)
        removed = opened.remove(document_ids, filters=filter or None)
        facts = [f"{library} has no document {id!r}." for id in dict.fromkeys(document_ids) if id not in existing]
        if filter and not removed:
            facts += [f"{fact}." for fact in unmatched_filter_notices(Filters.of(filter), opened.index)]
    inputs.terminal().print(f"{inputs.quantity(removed, 'document')} removed")
    for fact in facts:
        inputs.terminal(stderr=True).print(inputs.printable(fact))
    if facts:
        raise typer.Exit(1)

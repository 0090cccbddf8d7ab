"""Removing: remove documents from a library in batches."""

from __future__ import annotations

from collections.abc import Iterable

from capr.documents import CaprError
from capr.index.filters import clean
from capr.search import batches
from capr.search.resources import GivenFilters, Resources


def remove(resources: Resources, ids: str | Iterable[str] = (), filters: GivenFilters = None) -> int:
    """Remove documents by their ids, or all that match the filters; see `Library.remove`."""
    id_list = [ids] if isinstance(ids, str) else list(ids)
    if id_list and filters is not None:
        raise CaprError("document ids cannot be combined with filters. Fix: use one or the other.")
    removed = 0
    with resources.index.writing() as writer:
        unique_ids = list(dict.fromkeys(map(clean, id_list)))
        if filters is not None and (document_filters := resources.document_filters(filters)):
            unique_ids = list(resources.index.ids(document_filters))
        for begin in range(0, len(unique_ids), batches.PLAIN):
            removed += writer.remove(unique_ids[begin : begin + batches.PLAIN])
            writer.commit()
    return removed

"""Facets: how many documents have each value of a field, among those that pass some filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from capr.index import Filters, Index
from capr.index.filters import DAY, EXACT, NAMES, PASSAGE_NAMES, field_name

FACETS = ("patient", "type", "source", "aspect")
EVERY = 1_000_000  # values of a field that are counted
SHOWN = 50  # that are told


@dataclass(frozen=True, slots=True)
class Facet:
    """The values of a field.

    Attributes:
        values: the most frequent first, as a document writes them, each with its number of documents.
        more: how many further values there are.
    """

    values: tuple[tuple[str, int], ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class Facets:
    """What could be chosen.

    Attributes:
        documents: how many pass all filters.
        fields: for each name what documents have; its own filter is left out.
        months: `2024-03` with the number of documents, in their order; filters by date are left out.
        undated: documents that have no date, likewise.
    """

    documents: int
    fields: Mapping[str, Facet]
    months: tuple[tuple[str, int], ...]
    undated: int

    def as_json(self) -> dict[str, Any]:
        """A plain dictionary."""
        return {
            "documents": self.documents,
            **{
                name: [{"value": value, "count": count} for value, count in facet.values]
                for name, facet in self.fields.items()
            },
            "more": {name: facet.more for name, facet in self.fields.items()},
            "dates": [{"month": month, "count": count} for month, count in self.months],
            "undated": self.undated,
        }


def faceted(index: Index, filters: Filters, names: Sequence[str] = FACETS) -> Facets:
    """Counts documents; see `Library.facets`."""
    fields = {}
    for name in names:
        field = NAMES.get(name, field_name(name))
        values = index.values(field, EVERY, _without(filters, field))
        shown = values[:SHOWN]
        if field not in (*PASSAGE_NAMES, *EXACT):  # those are compared as they are written
            spelled = index.spelled(field, [value for value, _ in shown], _without(filters, field))
            shown = [(spelled.get(value, value), count) for value, count in shown]
        fields[name] = Facet(tuple(shown), max(0, len(values) - SHOWN))
    undated_too = replace(filters, since="", until="", days=(), not_days=())
    days = sorted(index.values(DAY, EVERY, undated_too))
    months = tuple((month, sum(count for _, count in some)) for month, some in groupby(days, lambda day: day[0][:7]))
    undated = len(index.ids(undated_too)) - sum(count for _, count in months)
    return Facets(len(index.ids(filters)), fields, months, undated)


def _without(filters: Filters, field: str) -> Filters:
    """The filters but for those that ask for values of a field."""
    return replace(filters, conditions=tuple(c for c in filters.conditions if c.name != field or c.exclude))

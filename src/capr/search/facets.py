"""Facets: the number of documents for each value of a field, among the documents that match the filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from capr.index import Filters, Index
from capr.index.filters import DAY, EXACT, NAMES, PASSAGE_NAMES, field_name

FACETS = ("patient", "type", "source", "aspect")
EVERY = 1_000_000  # values of a field to count
SHOWN = 50  # values of a field to return


@dataclass(frozen=True, slots=True)
class Facet:
    """The values of a field.

    Attributes:
        values: the values in the spelling of a document, each with its number of documents; the most frequent first.
        more: the number of values that are left out.
    """

    values: tuple[tuple[str, int], ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class Facets:
    """The facets of several fields.

    Attributes:
        documents: the number of documents that match all filters.
        fields: the facet of each field. The counts of a field ignore its own filter.
        months: months such as `2024-03`, each with its number of documents. The counts ignore filters on dates.
        undated: the number of documents without a date, regardless of filters on dates.
    """

    documents: int
    fields: Mapping[str, Facet]
    months: tuple[tuple[str, int], ...]
    undated: int

    def as_json(self) -> dict[str, Any]:
        """Return a plain dictionary."""
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


def count_facets(index: Index, filters: Filters, names: Sequence[str] = FACETS) -> Facets:
    """Count documents; see `Library.facets`."""
    fields = {}
    for name in names:
        field = NAMES.get(name, field_name(name))
        values = index.values(field, EVERY, _without(filters, field))
        shown = values[:SHOWN]
        if field not in (*PASSAGE_NAMES, *EXACT):  # the index stores other values in lower case
            spelled = index.display_values(field, [value for value, _ in shown], _without(filters, field))
            shown = [(spelled.get(value, value), count) for value, count in shown]
        fields[name] = Facet(tuple(shown), max(0, len(values) - SHOWN))
    any_date = replace(filters, since="", until="", days=(), not_days=())
    days = sorted(index.values(DAY, EVERY, any_date))
    months = tuple((month, sum(count for _, count in group)) for month, group in groupby(days, lambda day: day[0][:7]))
    undated = len(index.ids(any_date)) - sum(count for _, count in months)
    return Facets(len(index.ids(filters)), fields, months, undated)


def _without(filters: Filters, field: str) -> Filters:
    """Return the filters without those that ask for values of a field."""
    return replace(filters, conditions=tuple(c for c in filters.conditions if c.name != field or c.exclude))

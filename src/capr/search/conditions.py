"""Conditions: what the filters of a search mean in a library."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from capr.annotate import Vocabulary
from capr.documents import CaprError
from capr.index import Filters, Index
from capr.index.filters import ENTITY
from capr.search.parse import Parsed

MANY = 1_000_000  # values of a field that a * is compared with
TOLD = 8  # values of a field that are told where a filter finds nothing
THERE = "; there are "  # before these


def resolved(filters: Filters, index: Index, vocabulary: Vocabulary) -> Filters:
    """Filters with every entity, and every value that has a *, exchanged for what it means."""
    conditions = []
    known: dict[str, list[str]] = {}
    for condition in filters.conditions:
        if condition.name == "entity":
            about = Filters(entities=tuple(_code(entity, vocabulary) for entity in condition.values))
            conditions.append(replace(condition, name=ENTITY, values=about.entity_values))
            continue
        values = {value for value in condition.values if "*" not in value}
        for pattern in condition.values - values:
            if condition.name not in known:
                known[condition.name] = [value for value, _ in index.values(condition.name, MANY)]
            values.update([value for value in known[condition.name] if fits(value, pattern)] or [pattern])
        conditions.append(replace(condition, values=frozenset(values)))
    return replace(filters, conditions=tuple(conditions))


def fits(value: str, pattern: str) -> bool:
    """Whether a value is what a pattern says, in which a * stands for anything; never slower than to read it once.

    >>> fits("discharge summary", "disc*sum*"), fits("discharge summary", "*summ"), fits("aba", "ab*ba")
    (True, False, False)
    """
    begin, *middle, end = pattern.split("*")
    if len(value) < len(begin) + len(end) or not value.startswith(begin) or not value.endswith(end):
        return False
    place, last = len(begin), len(value) - len(end)
    for part in middle:
        found = value.find(part, place, last)
        if found < 0:
            return False
        place = found + len(part)
    return True


def about_entities(filters: Filters, parsed: Parsed) -> Filters:
    """Filters whose `without` is about the entities of the query; a notice, if it has none."""
    codes = [concept.code for concept in parsed.entities.values()]
    if filters.without and not codes:
        what = " or ".join(sorted(filters.without))
        parsed.notices.append(f"no entity was recognised in the query, so that nothing was left out as {what}")
    return filters.about(codes) if filters.without else filters


def passed_by_none(filters: Filters, index: Index) -> Iterator[str]:
    """What no document has of that which filters ask for."""
    for condition in filters.conditions:
        if condition.exclude or condition.name == ENTITY or index.ids(Filters((condition,))):
            continue  # somebody has it
        known = ", ".join(value for value, _ in index.values(condition.name, TOLD))
        wanted = ", ".join(sorted(condition.values)[:3])
        name = condition.name.removeprefix("#")
        yield f"no document has {name}={wanted}" + (f"{THERE}{known}" if known else f"; none has a field {name!r}")
    if filters.periods and not index.ids(Filters(days=filters.periods)):
        yield "no document has a date of that time; dates are filtered by if they are written 2023-01-31"


def _code(entity: str, vocabulary: Vocabulary) -> str:
    concept = vocabulary.find(entity) or vocabulary.by_code(entity)
    if concept is None:
        fix = "use another name of it (capr suggest), or search for it as words"
        raise CaprError(f"the vocabulary has no entity {entity!r}. Fix: {fix}.")
    return concept.code

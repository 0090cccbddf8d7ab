"""Conditions: resolve the filters of a search in a library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches

from capr.annotate import Vocabulary
from capr.documents import CaprError
from capr.index import Filters, Index
from capr.index.filters import ASPECT, ENTITY, ID, NAMES, Condition
from capr.search.parse import ParsedQuery

MANY = 1_000_000  # values of a field to compare with a pattern
SHOWN = 8  # values of a field to list in a notice
COMPUTED = (ASPECT, ENTITY, ID)  # fields that a document need not have to be excluded
DATES = "write 2024, 2024-03, 2024-03-18 or 2024-01..2024-06"
THERE = "; there are "  # separates the fact from the list of values


def resolve(filters: Filters, index: Index, vocabulary: Vocabulary) -> Filters:
    """Replace entities by their codes, and patterns (values with a *) by the values that match them."""
    conditions = []
    values_by_field: dict[str, list[str]] = {}
    for condition in filters.conditions:
        if condition.name == "entity":
            codes = Filters(entities=tuple(_code(entity, vocabulary) for entity in condition.values))
            conditions.append(replace(condition, name=ENTITY, values=codes.entity_values))
            continue
        values = {value for value in condition.values if "*" not in value}
        for pattern in condition.values - values:
            if condition.name not in values_by_field:
                values_by_field[condition.name] = [value for value, _ in index.values(condition.name, MANY)]
            matches = [value for value in values_by_field[condition.name] if matches_pattern(value, pattern)]
            values.update(matches or [pattern])
        conditions.append(replace(condition, values=frozenset(values)))
    return replace(filters, conditions=tuple(conditions))


def check_dates(filters: Filters, index: Index) -> None:
    """Raise `CaprError` for a value of `date` that is not a date, unless a document has exactly this value.

    Some documents have dates in another form, such as 03/2024.
    """
    for condition in filters.conditions:
        if condition.name != "date":
            continue
        for value in sorted(value for value in condition.values if "*" not in value):
            if not index.ids(Filters((Condition("date", frozenset((value,))),))):
                raise CaprError(f"{value!r} is not a date. Fix: {DATES}.")


def matches_pattern(value: str, pattern: str) -> bool:
    """Return whether a value matches a pattern, in which a * stands for any characters; in linear time.

    >>> [matches_pattern("discharge summary", pattern) for pattern in ("disc*sum*", "*summ")]
    [True, False]
    >>> matches_pattern("aba", "ab*ba")
    False
    """
    begin, *middle, end = pattern.split("*")
    if len(value) < len(begin) + len(end) or not value.startswith(begin) or not value.endswith(end):
        return False
    position, last = len(begin), len(value) - len(end)
    for part in middle:
        match = value.find(part, position, last)
        if match < 0:
            return False
        position = match + len(part)
    return True


def about_entities(filters: Filters, parsed: ParsedQuery) -> Filters:
    """Apply `without` to the entities of the query. If the query has none, add a notice."""
    codes = [concept.code for concept in parsed.entities.values()]
    if filters.without and not codes:
        flags = " or ".join(sorted(filters.without))
        parsed.notices.append(f"capr recognised no entity in the query, so it excluded no passage as {flags}")
    return filters.about(codes) if filters.without else filters


def unmatched_filter_notices(filters: Filters, index: Index) -> Iterator[str]:
    """Yield a notice for each filter that no document matches."""
    for condition in filters.conditions:
        if condition.exclude or condition.name == ENTITY or index.ids(Filters((condition,))):
            continue
        values = ", ".join(sorted(condition.values)[:3])
        name = condition.name.removeprefix("#")
        known_values = [value for value, _ in index.values(condition.name, MANY)]
        if name == "date" and "*" not in values:
            yield f"no document has date={values}, which is not a date; {DATES}"
        elif not known_values:
            yield f"no document has {name}={values}; the library has no field {name!r}{_nearest_field(name, index)}"
        else:
            yield f"no document has {name}={values}{THERE}{_listed(known_values)}{_other_case(condition, known_values)}"
    if filters.periods and not index.ids(Filters(days=filters.periods)):
        yield "no document is dated in that period; date filters match only dates such as 2023-01-31"


def unknown_value_notices(filters: Filters, index: Index) -> Iterator[str]:
    """Yield a notice for each filter that names several values, some of which no document has.

    A mistyped patient would otherwise be missing from a cohort unnoticed.
    """
    for condition in filters.conditions:
        if len(condition.values) < 2 or condition.exclude or condition.name in (*COMPUTED, "date"):
            continue
        known_values = [value for value, _ in index.values(condition.name, MANY)]
        unknown = condition.values.difference(known_values)
        if 0 < len(unknown) < len(condition.values):
            hint = _other_case(replace(condition, values=unknown), known_values)
            name = condition.name.removeprefix("#")
            yield f"no document has {name}={_listed(sorted(unknown))}{THERE}{_listed(known_values)}{hint}"


def ineffective_exclusion_notices(filters: Filters, index: Index) -> Iterator[str]:
    """Yield a notice for each filter that excludes values of a field that no document has."""
    for condition in filters.conditions:
        if condition.exclude and condition.name not in COMPUTED and not index.has(condition.name):
            name, values = condition.name.removeprefix("#"), ", ".join(sorted(condition.values)[:3])
            yield f"{name}!={values} excludes nothing; the library has no field {name!r}{_nearest_field(name, index)}"


def _nearest_field(name: str, index: Index) -> str:
    """Return the fix for an unknown field: the field with the most similar name, and the command that lists all."""
    nearest = get_close_matches(name, [*index.stats().fields, *NAMES, "entity"], 1)
    suggestion = f". Did you mean {nearest[0]}?" if nearest else "."
    return f"{suggestion} capr stats LIBRARY lists the fields"


def _listed(values: Sequence[str]) -> str:
    more = f" ... and {len(values) - SHOWN:,} more" if len(values) > SHOWN else ""
    return ", ".join(values[:SHOWN]) + more


def _other_case(condition: Condition, known_values: Iterable[str]) -> str:
    """Return a question that suggests the values that differ from those of the condition only by case."""
    folded = {value.casefold() for value in condition.values}
    matches = [value for value in known_values if value.casefold() in folded]
    return f". Did you mean {' or '.join(matches[:3])}?" if matches else ""


def _code(entity: str, vocabulary: Vocabulary) -> str:
    concept = vocabulary.find(entity) or vocabulary.by_code(entity)
    if concept is None:
        fix = "use another name of it (capr suggest), or search for it as words"
        raise CaprError(f"the vocabulary has no entity {entity!r}. Fix: {fix}.")
    return concept.code

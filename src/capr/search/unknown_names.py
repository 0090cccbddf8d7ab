"""Notices about entities, aspects and fields of a query that capr does not know, and therefore searches as words."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from shlex import quote

from capr.index import Filters, Index
from capr.index.filters import ASPECT, KNOWN, Condition
from capr.search.parse import FIELDS, ParsedQuery
from capr.segment.aspects import aspects

SIMILAR = 0.8  # minimum similarity of a name before a colon to a field, so that `test:positive` is not `text:positive`


def searched_as_words(parsed: ParsedQuery, index: Index) -> Iterator[str]:
    """Yield a notice for each name that the query marks as an entity or an aspect and that is searched as plain words.

    A heading that names no known aspect is an aspect of its own, which needs no notice if a document has it.
    """
    for entity in parsed.unknown_entities:
        fact = f"the vocabulary has no entity {entity!r}, so capr searched for it as plain words"
        if name := parsed.unquoted_entities.get(entity):
            yield f'{fact}. Did you mean entity:"{name}"?'
        else:
            yield f"{fact}; capr suggest {quote(entity)} lists similar names"
    aspect = parsed.unknown_aspect
    if aspect and not index.ids(Filters((Condition(ASPECT, frozenset((aspect,))),))):
        yield f"there is no aspect {aspect!r}, so capr searched for it as plain words{_nearest_aspect(aspect)}"


def misspelt_fields(parsed: ParsedQuery) -> Iterator[str]:
    """Yield a notice for each name before a colon that resembles a field of the query language.

    The fields of the library do not count: to list them is slow, and notes are full of names before colons.
    """
    for name, words in dict.fromkeys(parsed.unknown_fields):
        nearest = get_close_matches(name.lower(), (*KNOWN, *FIELDS), 1, SIMILAR)
        if nearest:
            yield f"capr searched for {name}:{words} as plain words. Did you mean {nearest[0]}:{words}?"


def _nearest_aspect(name: str) -> str:
    forms = {form.lower(): form for aspect in aspects().values() for form in (aspect.name, aspect.heading)}
    nearest = get_close_matches(name.lower(), forms, 1)
    return f". Did you mean {forms[nearest[0]]}?" if nearest else "; leave it out, or use the heading of a section"

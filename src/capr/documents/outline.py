"""Headings that a format marks, turned into the `section` annotations of a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from capr.documents.document import Annotation, Span


class Heading(NamedTuple):
    """A heading in the text: its range, its words, and its depth from 1."""

    begin: int
    end: int
    words: str
    level: int


def outline(headings: Sequence[Heading], length: int) -> tuple[Annotation, ...]:
    """A section from each heading to the next; nested headings are written `A | B`, the single title left out.

    What precedes the first heading is not annotated.
    """
    top = min((heading.level for heading in headings), default=0)
    one_title = sum(heading.level == top for heading in headings) == 1 and len(headings) > 1
    sections = []
    path: list[Heading] = []
    for i, heading in enumerate(headings):
        path = [above for above in path if above.level < heading.level] + [heading]
        shown = path[1:] if one_title and len(path) > 1 else path
        end = headings[i + 1].begin if i + 1 < len(headings) else length
        value = {
            "heading": " | ".join(above.words for above in shown),
            "level": heading.level,
            "heading_end": heading.end,
        }
        sections.append(Annotation("section", Span(heading.begin, end), value))
    return tuple(sections)

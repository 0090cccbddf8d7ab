"""Pieces and headings that a format marks, turned into the text of a document and its annotations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

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


def joined(
    pieces: Iterable[tuple[str, Mapping[str, Any]]], between: str, kind: str = "section"
) -> tuple[str, tuple[Annotation, ...]]:
    """A text made of pieces, and where each of them is, with what is known of it.

    >>> joined([("Clear.", {"heading": "Lungs"}), ("Soft.", {"heading": "Abdomen"})], "\\n")[1][1].span
    Span(begin=7, end=12)
    """
    texts, annotations, begin = [], [], 0
    for text, value in pieces:
        texts.append(text)
        annotations.append(Annotation(kind, Span(begin, begin + len(text)), value))
        begin += len(text) + len(between)
    return between.join(texts), tuple(annotations)

"""Sections from headings, and texts from parts, for the formats that mark either."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from capr.documents.document import Annotation, Span


class Heading(NamedTuple):
    """A heading in the text: its span, its words, and its level, counted from 1."""

    begin: int
    end: int
    words: str
    level: int


def outline(headings: Sequence[Heading], length: int) -> tuple[Annotation, ...]:
    """Return a section annotation from each heading to the next.

    The heading path joins nested headings as `A | B`. It leaves out a single heading of the top level, which is the
    title. The text before the first heading gets no annotation.

    Args:
        headings: the headings in the order of the text.
        length: the length of the text, where the last section ends.
    """
    top = min((heading.level for heading in headings), default=0)
    has_title = sum(heading.level == top for heading in headings) == 1 and len(headings) > 1
    sections = []
    path: list[Heading] = []
    for i, heading in enumerate(headings):
        path = [ancestor for ancestor in path if ancestor.level < heading.level] + [heading]
        titleless_path = path[1:] if has_title and len(path) > 1 else path
        end = headings[i + 1].begin if i + 1 < len(headings) else length
        value = {
            "heading": " | ".join(part.words for part in titleless_path),
            "level": heading.level,
            "heading_end": heading.end,
        }
        sections.append(Annotation("section", Span(heading.begin, end), value))
    return tuple(sections)


def join_parts(
    parts: Iterable[tuple[str, Mapping[str, Any]]], separator: str, kind: str = "section"
) -> tuple[str, tuple[Annotation, ...]]:
    """Join parts to one text, and return it with an annotation for each part.

    Args:
        parts: the text and the annotation value of each part.
        separator: the text between two parts.
        kind: the kind of the annotations.

    >>> join_parts([("Clear.", {"heading": "Lungs"}), ("Soft.", {"heading": "Abdomen"})], "\\n")[1][1].span
    Span(begin=7, end=12)
    """
    texts, annotations, begin = [], [], 0
    for text, value in parts:
        texts.append(text)
        annotations.append(Annotation(kind, Span(begin, begin + len(text)), value))
        begin += len(text) + len(separator)
    return separator.join(texts), tuple(annotations)

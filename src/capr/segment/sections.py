"""Sections: from a heading to the next, as the source marks them or as the text shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from capr.documents.document import Annotation, Document, Span
from capr.segment.headings import common_headings, frequent_headings


@dataclass(frozen=True, slots=True)
class Section:
    """A piece of a document under one heading.

    Attributes:
        span: the piece, heading included.
        heading: `A | B` when nested, None before the first heading.
        heading_span: where the heading (with its colon) stands in the text; None if it is not in the text.
    """

    span: Span
    heading: str | None = None
    heading_span: Span | None = None

    @property
    def body(self) -> Span:
        """The piece without its heading."""
        return Span(min(self.heading_span.end, self.span.end), self.span.end) if self.heading_span else self.span

    @property
    def top(self) -> str | None:
        """The outermost heading."""
        return self.heading.split(" | ")[0] if self.heading is not None else None


def sections(document: Document, counts: Mapping[str, int] | None = None, threshold: int = 1) -> list[Section]:
    """The sections of a document, in order, disjoint, and with every character that is not blank.

    Args:
        document: its `section` annotations are used where the source had any, unless counts are given.
        counts: headings counted on a training set (`HeadingCounts.learn`); without them, a lexicon decides.
        threshold: how often a heading must have been counted to open a section.

    Reference: Lanz and Pecina, Paragraph Retrieval for Enhanced Question Answering in Clinical Documents, 2024.

    Example:
        >>> note = Document("1", "ALLERGIES: None.\\nPLAN:\\nRest.\\n")
        >>> [(section.heading, note[section.body].strip()) for section in sections(note)]
        [('ALLERGIES', 'None.'), ('PLAN', 'Rest.')]
    """
    marked = document.annotated("section") if counts is None else []
    if marked:
        return _marked_sections(document, marked)
    text = document.text
    found = common_headings(text) if counts is None else frequent_headings(text, counts, threshold)
    headings = list(found)
    result = []
    if headings and text[: headings[0].begin].strip():
        result.append(Section(Span(0, headings[0].begin)))
    path: list[tuple[int, str]] = []
    for i, heading in enumerate(headings):
        path = [above for above in path if above[0] < heading.level] + [(heading.level, heading.words)]
        begin = heading.begin if result or i else 0  # blanks before the first heading go with it
        end = headings[i + 1].begin if i + 1 < len(headings) else len(text)
        words = " | ".join(words for _, words in path)
        result.append(Section(Span(begin, end), words, Span(heading.begin, heading.end).trimmed(text)))
    if not headings and text.strip():
        result.append(Section(Span(0, len(text))))
    return result


def _marked_sections(document: Document, marked: Sequence[Annotation]) -> list[Section]:
    """What the source marked, and what it left between as sections without a heading."""
    result: list[Section] = []
    position = 0
    for annotation in marked:
        begin, end = max(annotation.span.begin, position), annotation.span.end
        if begin >= end:
            continue
        if document.text[position:begin].strip():
            result.append(Section(Span(position, begin)))
        heading_end = annotation.value.get("heading_end")
        inside = None
        if heading_end is not None and begin < heading_end <= end:
            inside = Span(begin, heading_end).trimmed(document.text)
        result.append(Section(Span(begin, end), annotation.value.get("heading") or None, inside))
        position = end
    if document.text[position:].strip():
        result.append(Section(Span(position, len(document.text))))
    return result

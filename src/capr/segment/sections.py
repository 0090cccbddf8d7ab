"""Sections: from each heading to the next, as the source marks them or as capr finds them in the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from capr.documents.document import Annotation, Document, Span
from capr.segment.headings import common_headings, frequent_headings


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with the text under it.

    Attributes:
        span: the characters of the section, including the heading.
        heading: the heading path, `A | B` for a nested heading; None for the text before the first heading.
        heading_span: the span of the heading with its colon; None if the heading is not part of the text.

    Example:
        >>> note = Document("n1", "PLAN: Rest.")
        >>> (section,) = sections(note)
        >>> section.heading, note[section.heading_span], note[section.body]
        ('PLAN', 'PLAN:', ' Rest.')
    """

    span: Span
    heading: str | None = None
    heading_span: Span | None = None

    @property
    def body(self) -> Span:
        """The span of the section without its heading."""
        return Span(min(self.heading_span.end, self.span.end), self.span.end) if self.heading_span else self.span

    @property
    def top(self) -> str | None:
        """The outermost heading of the path: `A` for `A | B`."""
        return self.heading.split(" | ")[0] if self.heading is not None else None


def sections(document: Document, counts: Mapping[str, int] | None = None, threshold: int = 1) -> list[Section]:
    """Return the sections of a document.

    The sections do not overlap. Together they contain every character that is not white space.

    Args:
        document: any document. Without `counts`, its `section` annotations are the sections, if it has any.
        counts: counts of headings in a training set (`HeadingCounts.learn`). Without them, a lexicon decides which
            lines are headings.
        threshold: the minimum count of a heading that opens a section.

    Returns:
        The sections in the order of the text.

    Reference: Lanz and Pecina, Paragraph Retrieval for Enhanced Question Answering in Clinical Documents, 2024.

    Example:
        >>> note = Document("1", "ALLERGIES: None.\\nPLAN:\\nRest.\\n")
        >>> [(section.heading, note[section.body].strip()) for section in sections(note)]
        [('ALLERGIES', 'None.'), ('PLAN', 'Rest.')]
    """
    annotations = document.annotated("section") if counts is None else []
    if annotations:
        return _annotated_sections(document, annotations)
    text = document.text
    headings = list(common_headings(text) if counts is None else frequent_headings(text, counts, threshold))
    result = []
    if headings and text[: headings[0].begin].strip():
        result.append(Section(Span(0, headings[0].begin)))
    path: list[tuple[int, str]] = []
    for i, heading in enumerate(headings):
        path = [ancestor for ancestor in path if ancestor[0] < heading.level] + [(heading.level, heading.words)]
        begin = heading.begin if result or i else 0  # the first section takes the white space before its heading
        end = headings[i + 1].begin if i + 1 < len(headings) else len(text)
        words = " | ".join(words for _, words in path)
        result.append(Section(Span(begin, end), words, Span(heading.begin, heading.end).trimmed(text)))
    if not headings and text.strip():
        result.append(Section(Span(0, len(text))))
    return result


def _annotated_sections(document: Document, annotations: Sequence[Annotation]) -> list[Section]:
    """Return the sections that the source marked, and the text between them as sections without a heading."""
    result: list[Section] = []
    position = 0
    for annotation in annotations:
        begin, end = max(annotation.span.begin, position), annotation.span.end
        if begin >= end:
            continue
        if document.text[position:begin].strip():
            result.append(Section(Span(position, begin)))
        heading_end = annotation.value.get("heading_end")
        heading_span = None
        if heading_end is not None and begin < heading_end <= end:
            heading_span = Span(begin, heading_end).trimmed(document.text)
        result.append(Section(Span(begin, end), annotation.value.get("heading") or None, heading_span))
        position = end
    if document.text[position:].strip():
        result.append(Section(Span(position, len(document.text))))
    return result

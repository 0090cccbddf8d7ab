"""The outline of a document: its sentences and sections, computed once for passages and annotations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from capr.documents.document import Document, Span
from capr.segment.sections import Section, sections
from capr.segment.sentences import sentences


class Outline(NamedTuple):
    """The sentences and sections of a document.

    Attributes:
        sentences: the spans of the sentences.
        sections: the sections by heading.
    """

    sentences: tuple[Span, ...]
    sections: tuple[Section, ...]


def outline(document: Document, counts: Mapping[str, int] | None = None, threshold: int = 1) -> Outline:
    """Find the sentences and sections of a document, for `passages` and `Annotator.annotate`.

    Args:
        document: any document.
        counts: counts of headings in a training set, as for `sections`.
        threshold: the minimum count of a heading that opens a section.

    Example:
        >>> note_outline = outline(Document("1", "PLAN: Rest. Drink.\\nDIET: Tea."))
        >>> len(note_outline.sentences), [section.heading for section in note_outline.sections]
        (3, ['PLAN', 'DIET'])
    """
    return Outline(tuple(sentences(document.text)), tuple(sections(document, counts, threshold)))

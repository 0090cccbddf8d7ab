"""Reports with questions about them, and where in the text the answers stand."""

from __future__ import annotations

from dataclasses import dataclass

from capr.documents import Document, Span


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about a report.

    Attributes:
        id: of the question.
        text: of the question.
        answers: ranges of the report's text, each of which answers it; none if the report does not say.
    """

    id: str
    text: str
    answers: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """A document and the questions that were asked about it."""

    document: Document
    questions: tuple[Asked, ...]

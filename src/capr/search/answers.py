"""What asking gives: the words that answer a question, where they stand, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from capr.annotate.context import Cue
from capr.documents import Document, Span
from capr.search.said import said


@dataclass(frozen=True, slots=True)
class Place:
    """Another place at which the same answer was read.

    Attributes:
        document: its id.
        span: of the document.
        text: of the span.
        headings: as those of an answer.
        confidence: of the answer at this place.
        context: likewise.
    """

    document: str
    span: Span
    text: str
    headings: tuple[str, ...]
    confidence: float
    context: Mapping[str, Cue] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """A plain dictionary."""
        return {
            "document": self.document,
            "begin": self.span.begin,
            "end": self.span.end,
            "text": self.text,
            "confidence": round(self.confidence, 4),
            "headings": list(self.headings),
            "context": said(self.context),
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """Words of a document that answer a question. All spans index the text of that document.

    Attributes:
        source: the document itself.
        span: the answer, never longer than its paragraph.
        confidence: from 0 to 1, how likely it is that this is the answer.
        paragraph: in which it was read.
        sentence: that it stands in; from the first to the last, if it reaches over several.
        headings: the heading of its section, under those of the sections around it.
        context: the cue of each property that the answer has: negated, possible, hypothetical, historical, family.
        places: others at which the same answer was read, the surest first.
    """

    source: Document
    span: Span
    confidence: float
    paragraph: Span
    sentence: Span
    headings: tuple[str, ...] = ()
    context: Mapping[str, Cue] = field(default_factory=dict)
    places: tuple[Place, ...] = ()

    def __getitem__(self, span: Span) -> str:
        """The text of a span of the document."""
        return self.source[span]

    @property
    def text(self) -> str:
        """The answer itself."""
        return self.source[self.span]

    @property
    def document(self) -> str:
        """The id of the document."""
        return self.source.id

    @property
    def title(self) -> str:
        """Of the document."""
        return self.source.title

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Of the document."""
        return self.source.metadata

    def as_json(self) -> dict[str, Any]:
        """A plain dictionary; `context` has the words for every property that is true."""

        def piece(span: Span) -> dict[str, Any]:
            return {"begin": span.begin, "end": span.end, "text": self[span]}

        return {
            "document": self.document,
            **piece(self.span),
            "confidence": round(self.confidence, 4),
            "title": self.title,
            "headings": list(self.headings),
            "metadata": dict(self.metadata),
            "context": said(self.context),
            "sentence": piece(self.sentence),
            "paragraph": piece(self.paragraph),
            "places": [place.as_json() for place in self.places],
        }


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers to a question, best first, those included that are too unsure to be one.

    Attributes:
        question: as it was read.
        answers: as many as were asked for, at most.
        threshold: the confidence from which on an answer counts.
        reader: the name of the model.
        documents: how many were read.
        paragraphs: how many were read.
        took: seconds.
        notices: what a user should know, such as why something was not read.
    """

    question: str
    answers: tuple[Answer, ...]
    threshold: float
    reader: str
    documents: int = 0
    paragraphs: int = 0
    took: float = 0.0
    notices: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)

    def __getitem__(self, index: int) -> Answer:
        return self.answers[index]

    @property
    def found(self) -> bool:
        """Whether there is an answer at all: the best is as sure as the threshold, or surer."""
        return bool(self.answers) and self.answers[0].confidence >= self.threshold

    def as_json(self) -> dict[str, Any]:
        """A plain dictionary with `answers`."""
        return {
            "question": self.question,
            "found": self.found,
            "threshold": self.threshold,
            "reader": self.reader,
            "documents": self.documents,
            "paragraphs": self.paragraphs,
            "took": round(self.took, 3),
            "notices": list(self.notices),
            "answers": [answer.as_json() for answer in self.answers],
        }

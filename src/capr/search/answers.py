"""The results of asking: answers with their spans, confidence and context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from capr.annotate.context import Cue, cues_as_json
from capr.deprecation import renamed_property
from capr.documents import Document, Span
from capr.search.json_records import span_as_json
from capr.search.listing import Listing


@dataclass(frozen=True, slots=True)
class Place:
    """Another place of the same answer.

    Attributes:
        document: the id of the document.
        span: the span of the answer in the document.
        text: the text of the span.
        headings: the headings of its section, the outermost first.
        confidence: the confidence of the answer at this place.
        context: the context of the answer at this place.
    """

    document: str
    span: Span
    text: str
    headings: tuple[str, ...]
    confidence: float
    context: Mapping[str, Cue] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return a plain dictionary."""
        return {
            "document": self.document,
            **span_as_json(self.span, self.text),
            "confidence": round(self.confidence, 4),
            "headings": list(self.headings),
            "context": cues_as_json(self.context),
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """Words of a document that answer a question. All spans index the text of that document.

    Attributes:
        source: the document.
        span: the span of the answer, which lies in its passage.
        confidence: the estimated probability that the answer is right, 0 to 1.
        passage: the span of the passage that contains the answer.
        sentence: the span of the answer's sentence; if the answer spans several sentences, from the first to the last.
        headings: the headings of its section, the outermost first.
        context: the cue of each property: negated, possible, hypothetical, historical, family.
        places: other places of the same answer, the surest first.
    """

    source: Document
    span: Span
    confidence: float
    passage: Span
    sentence: Span
    headings: tuple[str, ...] = ()
    context: Mapping[str, Cue] = field(default_factory=dict)
    places: tuple[Place, ...] = ()

    def __getitem__(self, span: Span) -> str:
        """Return the text of a span of the document."""
        return self.source[span]

    paragraph = renamed_property("paragraph", "passage")

    @property
    def text(self) -> str:
        """The text of the answer."""
        return self.source[self.span]

    @property
    def document(self) -> str:
        """The id of the document."""
        return self.source.id

    @property
    def title(self) -> str:
        """The title of the document."""
        return self.source.title

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata of the document."""
        return self.source.metadata

    def as_json(self) -> dict[str, Any]:
        """Return a plain dictionary; `context` has the cue of every property that is true.

        `paragraph` is the old name of `passage`, which this release still supports.
        """
        passage = span_as_json(self.passage, self[self.passage])
        return {
            "document": self.document,
            **span_as_json(self.span, self.text),
            "confidence": round(self.confidence, 4),
            "title": self.title,
            "headings": list(self.headings),
            "metadata": dict(self.metadata),
            "context": cues_as_json(self.context),
            "sentence": span_as_json(self.sentence, self[self.sentence]),
            "passage": passage,
            "paragraph": passage,
            "places": [place.as_json() for place in self.places],
        }


@dataclass(frozen=True, slots=True)
class Answers(Listing[Answer]):
    """The answers to a question, best first, including those below the threshold.

    Attributes:
        question: the question, without white space around it.
        answers: at most `k` answers.
        threshold: the minimum confidence of an answer.
        reader: the name of the reader.
        documents: the number of documents that were read.
        passages: the number of passages that were read.
        took: the duration in seconds.
        notices: notices for the user, such as parts of the question that were not read.
    """

    name: ClassVar[str] = "answers"
    question: str
    answers: tuple[Answer, ...]
    threshold: float
    reader: str
    documents: int = 0
    passages: int = 0
    took: float = 0.0
    notices: tuple[str, ...] = ()

    @property
    def answered(self) -> bool:
        """Whether the confidence of the best answer reaches the threshold."""
        return bool(self.answers) and self.answers[0].confidence >= self.threshold

    found = renamed_property("found", "answered")
    paragraphs = renamed_property("paragraphs", "passages")

    def about(self) -> dict[str, Any]:
        """Return the question, the reader and whether there is an answer, as plain values.

        `found` and `paragraphs` are the old names of `answered` and `passages`, which this release still supports.
        """
        return {
            "question": self.question,
            "answered": self.answered,
            "found": self.answered,
            "threshold": self.threshold,
            "reader": self.reader,
            "documents": self.documents,
            "passages": self.passages,
            "paragraphs": self.passages,
            "took": round(self.took, 3),
        }

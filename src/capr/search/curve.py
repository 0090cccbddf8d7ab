"""The curve of a query over a document: how much each sentence has to do with the entity, the aspect, and both.

Reference: Arnold et al., Learning Contextualized Document Representations for Healthcare Answer Retrieval (CDV), 2020,
figure 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from capr.documents import Document, Span
from capr.index import Sentences
from capr.index.protocol import Vector
from capr.search.runs import answer, span_of
from capr.segment import Passage


@dataclass(frozen=True, slots=True)
class SentenceScore:
    """What a query says of a sentence.

    Attributes:
        span: of the document.
        entity: cosine with the entity, times the weight that the model gives it, if it does; 0 if none is asked for.
        aspect: cosine with the aspect, likewise.
        both: their mean, by which passages are ranked.
    """

    span: Span
    entity: float
    aspect: float
    both: float


@dataclass(frozen=True, slots=True)
class Curve:
    """The scores of all sentences of a document.

    Attributes:
        document: itself.
        entity: that was asked for.
        aspect: that was asked for.
        sentences: in the order of the text.
        headings: of its sections, each with the place at which the section begins.
        threshold: which sentences are a part of the answer; see `capr.search.runs.answer`.
        by: what scored them: `discourse`, `encoder` or `words`.
    """

    document: Document
    entity: str
    aspect: str
    sentences: tuple[SentenceScore, ...]
    headings: tuple[tuple[int, str], ...] = ()
    threshold: float = 0.5
    by: str = "discourse"

    def __iter__(self) -> Iterator[SentenceScore]:
        return iter(self.sentences)

    def __len__(self) -> int:
        return len(self.sentences)

    def __getitem__(self, index: int) -> SentenceScore:
        return self.sentences[index]

    @property
    def answer(self) -> Span:
        """The run of sentences that answers best, wherever passages end; empty if there are no sentences."""
        run = answer([one.both for one in self.sentences], self.threshold)
        return span_of([one.span for one in self.sentences], run)

    def peaks(self, count: int = 3) -> list[SentenceScore]:
        """The best sentences that no neighbour surpasses, best first."""
        scores = [one.both for one in self.sentences]
        tops = [
            one
            for place, one in enumerate(self.sentences)
            if scores[place] >= max(scores[max(0, place - 1) : place + 2]) and scores[place - 1 : place] != [one.both]
        ]
        return sorted(tops, key=lambda one: (-one.both, one.span))[:count]

    def first_sentences(self) -> list[tuple[int, str]]:
        """The headings, each with the place of the first sentence of its section among the sentences."""
        found = []
        for begin, heading in self.headings:
            place = next((i for i, one in enumerate(self.sentences) if one.span.end > begin), None)
            if place is not None:
                found.append((place, heading))
        return found

    def as_json(self) -> dict[str, Any]:
        """A plain dictionary."""
        return {
            "document": self.document.id,
            "entity": self.entity,
            "aspect": self.aspect,
            "by": self.by,
            "answer": {"begin": self.answer.begin, "end": self.answer.end, "text": self.document[self.answer]},
            "headings": [{"begin": begin, "heading": heading} for begin, heading in self.headings],
            "sentences": [
                {
                    "begin": one.span.begin,
                    "end": one.span.end,
                    "text": self.document[one.span],
                    "entity": one.entity,
                    "aspect": one.aspect,
                    "both": one.both,
                }
                for one in self.sentences
            ],
        }


def scored(sentences: Sequence[Sentences], query: Vector) -> tuple[SentenceScore, ...]:
    """The scores of the sentences of passages; one that belongs to two passages comes once.

    Each half of a vector has the length 1 / sqrt(2), so that the product of two halves is half of their cosine.
    """
    half = len(query) // 2
    found: dict[Span, SentenceScore] = {}
    for one in sentences:
        entity, aspect = 2 * one.vectors[:, :half] @ query[:half], 2 * one.vectors[:, half:] @ query[half:]
        for span, of_entity, of_aspect in zip(one.spans, entity.tolist(), aspect.tolist(), strict=True):
            both = (of_entity + of_aspect) / 2
            found[span] = SentenceScore(span, round(of_entity, 4), round(of_aspect, 4), round(both, 4))
    return tuple(found[span] for span in sorted(found))


def headings_of(passages: Sequence[Passage]) -> tuple[tuple[int, str], ...]:
    """The headings of sections, where they begin; of a section in several passages, once."""
    found: list[tuple[int, str]] = []
    for passage in passages:
        if passage.heading and (not found or found[-1][1] != passage.heading):
            found.append((passage.span.begin, passage.heading))
    return tuple(found)

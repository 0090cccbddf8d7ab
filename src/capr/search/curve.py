"""The curve of a query over a document: the score of each sentence for the entity, the aspect and both.

Reference: Arnold et al., Learning Contextualized Document Representations for Healthcare Answer Retrieval (CDV), 2020,
figure 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from capr.documents import Document, Span
from capr.index import SpanVectors
from capr.runtime.identity import Vector
from capr.runtime.sentence_runs import answer, span_of
from capr.segment import Passage


@dataclass(frozen=True, slots=True)
class SentenceScore:
    """The scores of a sentence for a query.

    Attributes:
        span: the span of the sentence in the document.
        entity: cosine with the entity, weighted if the model weights entities; 0 if the query has no entity.
        aspect: cosine with the aspect, weighted in the same way; 0 if the query has no aspect.
        both: the mean of the two, which ranks passages.
    """

    span: Span
    entity: float
    aspect: float
    both: float


@dataclass(frozen=True, slots=True)
class Curve:
    """The scores of all sentences of a document.

    Attributes:
        document: the document.
        entity: the entity of the query.
        aspect: the aspect of the query.
        sentences: the scores, in the order of the text.
        headings: the headings of its sections, each with the offset at which the section begins.
        threshold: decides which sentences belong to the answer; see `capr.runtime.sentence_runs.answer`.
        by: the scorer: `discourse`, `encoder` or `words`.
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
        """The run of sentences that answers best, across passages; empty if there are no sentences."""
        run = answer([sentence.both for sentence in self.sentences], self.threshold)
        return span_of([sentence.span for sentence in self.sentences], run)

    def peaks(self, count: int = 3) -> list[SentenceScore]:
        """Return the best sentences among those that score no less than their neighbours, best first."""
        scores = [sentence.both for sentence in self.sentences]
        peaks = [
            sentence
            for i, sentence in enumerate(self.sentences)
            if scores[i] >= max(scores[max(0, i - 1) : i + 2]) and scores[i - 1 : i] != [sentence.both]
        ]
        return sorted(peaks, key=lambda sentence: (-sentence.both, sentence.span))[:count]

    def first_sentences(self) -> list[tuple[int, str]]:
        """Return the headings, each with the index of the first sentence of its section."""
        result = []
        for begin, heading in self.headings:
            index = next((i for i, sentence in enumerate(self.sentences) if sentence.span.end > begin), None)
            if index is not None:
                result.append((index, heading))
        return result

    def as_json(self) -> dict[str, Any]:
        """Return a plain dictionary."""
        return {
            "document": self.document.id,
            "entity": self.entity,
            "aspect": self.aspect,
            "by": self.by,
            "answer": {"begin": self.answer.begin, "end": self.answer.end, "text": self.document[self.answer]},
            "headings": [{"begin": begin, "heading": heading} for begin, heading in self.headings],
            "sentences": [
                {
                    "begin": sentence.span.begin,
                    "end": sentence.span.end,
                    "text": self.document[sentence.span],
                    "entity": sentence.entity,
                    "aspect": sentence.aspect,
                    "both": sentence.both,
                }
                for sentence in self.sentences
            ],
        }


def score_sentences(passages: Sequence[SpanVectors], query: Vector) -> tuple[SentenceScore, ...]:
    """Return the scores of the sentences of passages, in the order of the text.

    A sentence in two passages is returned once. Each half of a vector has the length 1 / sqrt(2), so that the product
    of two halves is half of their cosine.

    Args:
        passages: the vectors of the sentences of each passage.
        query: the vector of the query.
    """
    half = len(query) // 2
    scores: dict[Span, SentenceScore] = {}
    for passage in passages:
        entities, aspects = 2 * passage.vectors[:, :half] @ query[:half], 2 * passage.vectors[:, half:] @ query[half:]
        for span, entity, aspect in zip(passage.spans, entities.tolist(), aspects.tolist(), strict=True):
            both = (entity + aspect) / 2
            scores[span] = SentenceScore(span, round(entity, 4), round(aspect, 4), round(both, 4))
    return tuple(scores[span] for span in sorted(scores))


def headings_of(passages: Sequence[Passage]) -> tuple[tuple[int, str], ...]:
    """Return the headings of the sections of passages, each once, with the offsets at which the sections begin."""
    headings: list[tuple[int, str]] = []
    for passage in passages:
        if passage.heading and (not headings or headings[-1][1] != passage.heading):
            headings.append((passage.span.begin, passage.heading))
    return tuple(headings)

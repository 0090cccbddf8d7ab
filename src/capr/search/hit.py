"""The results of a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from capr.annotate import Mention
from capr.documents import Span
from capr.search.json_records import mention_as_json, span_as_json
from capr.search.listing import Listing
from capr.segment import Passage


@dataclass(frozen=True, slots=True)
class Stage:
    """The rank of a passage in one stage of the search, counted from 1, and its score there."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a passage with its score.

    The score is the share of the query that the sentence contains, 0 to 1, or the score of a model for the sentence.
    """

    span: Span
    score: float


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A passage before or after a hit."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that search returns. All spans index the text of its document.

    Attributes:
        passage: the passage, with its spans and heading.
        text: the text of its span.
        score: the score that orders the hits.
        title: the title of the document.
        metadata: the metadata of the document.
        aspect: the aspect of its section.
        mentions: the mentions in the passage, with their context.
        sentences: the sentences that are evidence, best first.
        highlights: the spans of words of the query and of names of its entities.
        stages: the rank and score in each stage of the search.
        neighbours: the passages around it, if the search asks for them.
        group: the document or patient of a grouped hit; empty without grouping.
        others: further hits of the same group.
        passages: the number of passages of the document.
    """

    passage: Passage
    text: str
    score: float
    title: str
    metadata: Mapping[str, Any]
    aspect: str
    mentions: tuple[Mention, ...]
    sentences: tuple[Sentence, ...]
    highlights: tuple[Span, ...]
    stages: Mapping[str, Stage]
    neighbours: tuple[Neighbour, ...] = ()
    group: str = ""
    others: tuple[Hit, ...] = ()
    passages: int = 0

    def __getitem__(self, span: Span) -> str:
        """Return the text of a span of the document that lies in the passage."""
        return self.text[span.begin - self.passage.span.begin : span.end - self.passage.span.begin]

    @property
    def document(self) -> str:
        """The id of the document."""
        return self.passage.document

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings of its section, the outermost first."""
        return tuple(self.passage.heading.split(" | ")) if self.passage.heading else ()

    def as_json(self) -> dict[str, Any]:
        """Return a plain dictionary."""
        record: dict[str, Any] = {
            "document": self.document,
            "index": self.passage.index,
            "passages": self.passages,
            **span_as_json(self.passage.span, self.text),
            "score": self.score,
            "title": self.title,
            "headings": list(self.headings),
            "aspect": self.aspect,
            "metadata": dict(self.metadata),
            "sentences": [{**span_as_json(s.span, self[s.span]), "score": s.score} for s in self.sentences],
            "highlights": [list(span) for span in self.highlights],
            "mentions": [mention_as_json(m, self[m.span]) for m in self.mentions],
            "stages": {name: {"rank": s.rank, "score": s.score} for name, s in self.stages.items()},
        }
        if self.neighbours:
            record["neighbours"] = [span_as_json(neighbour.span, neighbour.text) for neighbour in self.neighbours]
        if self.group:
            record["group"] = self.group
            record["others"] = [hit.as_json() for hit in self.others]
        return record


@dataclass(frozen=True, slots=True)
class Results(Listing[Hit]):
    """The hits of a query, best first, and the interpretation of the query.

    Attributes:
        hits: the hits.
        mode: the mode of the search: `lexical`, `dense`, `hybrid` or `cdv`.
        expanded: each entity that was recognised, with its other names, which the search includes.
        notices: notices for the user, such as why a stage was left out.
    """

    name: ClassVar[str] = "hits"
    hits: tuple[Hit, ...]
    mode: str
    expanded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notices: tuple[str, ...] = ()

    def about(self) -> dict[str, Any]:
        """Return the interpretation of the query as plain values."""
        return {"mode": self.mode, "expanded": {name: list(names) for name, names in self.expanded.items()}}

"""What a search gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from capr.annotate import Mention
from capr.annotate.context import FLAGS
from capr.documents import Span
from capr.search.said import said
from capr.segment import Passage


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage of the search said of a passage: its rank, from 1, and its score."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a passage and the share of the query, from 0 to 1, that it speaks of; in cdv search, its score."""

    span: Span
    score: float


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A passage before or after one that was found."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found. All spans index the text of its document.

    Attributes:
        passage: where it is.
        text: of its span.
        score: by which the hits are ordered.
        title: of the document.
        metadata: of the document.
        aspect: what the section is about.
        mentions: in the passage, with their context.
        sentences: that speak of the query, best first.
        highlights: words of the query and names of its entities.
        stages: what each stage of the search said.
        neighbours: passages around it, if asked for.
        group: the document or patient that it stands for, if grouped.
        others: further hits of the same group.
        passages: how many the document has.
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
        """The text of a span of the document that lies in the passage."""
        return self.text[span.begin - self.passage.span.begin : span.end - self.passage.span.begin]

    @property
    def document(self) -> str:
        """The id of the document."""
        return self.passage.document

    @property
    def headings(self) -> tuple[str, ...]:
        """The heading of the section, under those of the sections around it."""
        return tuple(self.passage.heading.split(" | ")) if self.passage.heading else ()

    def as_json(self) -> dict[str, Any]:
        """A plain dictionary."""
        span = self.passage.span
        record: dict[str, Any] = {
            "document": self.document,
            "index": self.passage.index,
            "passages": self.passages,
            "begin": span.begin,
            "end": span.end,
            "text": self.text,
            "score": self.score,
            "title": self.title,
            "headings": list(self.headings),
            "aspect": self.aspect,
            "metadata": dict(self.metadata),
            "sentences": [
                {"begin": s.span.begin, "end": s.span.end, "text": self[s.span], "score": s.score}
                for s in self.sentences
            ],
            "highlights": [list(span) for span in self.highlights],
            "mentions": [mention_as_json(m, self[m.span]) for m in self.mentions],
            "stages": {name: {"rank": s.rank, "score": s.score} for name, s in self.stages.items()},
        }
        if self.neighbours:
            record["neighbours"] = [{"begin": n.span.begin, "end": n.span.end, "text": n.text} for n in self.neighbours]
        if self.group:
            record["group"] = self.group
            record["others"] = [hit.as_json() for hit in self.others]
        return record


def mention_as_json(mention: Mention, text: str) -> dict[str, Any]:
    """A plain dictionary of a mention, which says `text`; `cues` has the words for every property that is true."""
    return {
        "begin": mention.span.begin,
        "end": mention.span.end,
        "text": text,
        "kind": mention.kind,
        "concept": mention.concept.as_json() if mention.concept else None,
        **{flag: True for flag in FLAGS if flag in mention.context},
        "cues": said(mention.context),
    }


@dataclass(frozen=True, slots=True)
class Results:
    """The hits, best first, and how the query was understood.

    Attributes:
        hits: the passages.
        mode: `lexical`, `dense`, `hybrid` or `cdv`, as it was done.
        expanded: each entity that was recognised, with its other names, which were looked for, too.
        notices: what a user should know, such as why a stage was left out.
    """

    hits: tuple[Hit, ...]
    mode: str
    expanded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notices: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, index: int) -> Hit:
        return self.hits[index]

    def as_json(self) -> dict[str, Any]:
        """A plain dictionary with `hits`."""
        return {
            "mode": self.mode,
            "expanded": {name: list(others) for name, others in self.expanded.items()},
            "notices": list(self.notices),
            "hits": [hit.as_json() for hit in self.hits],
        }

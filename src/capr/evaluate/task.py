"""A ranking task: queries, and for each the passages to rank and those that answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from capr.annotate.query import Query
from capr.documents import Document, Span
from capr.segment import under

CANDIDATES = 64
FORMS = ("tuple", "question")


@dataclass(frozen=True, slots=True)
class Asked:
    """A query of a task.

    Attributes:
        id: by which runs and relevance judgements know it.
        entity: what is asked about.
        aspect: what is asked of it, as a heading would say it.
        question: the same in the words of the source; empty if it has none.
        relevant: ids of the passages that answer.
        candidates: ids of the passages to rank; empty for all that there are.
        groups: by which results are reported apart, such as aspect and source.
    """

    id: str
    entity: str
    aspect: str
    question: str
    relevant: frozenset[str]
    candidates: tuple[str, ...] = ()
    groups: Mapping[str, str] = field(default_factory=dict)

    def query(self, form: str) -> Query:
        """The query as a tuple or as a question; where the source has no question, the tuple is put into words."""
        if form == "question" and self.question:
            return Query(self.question)
        return Query(entity=self.entity, aspect=self.aspect) if self.entity or self.aspect else Query(self.question)


@dataclass(frozen=True)
class Task:
    """Passages by id, and what is asked of them.

    `openings` are of the passages' documents, for those that do not begin them. `documents` are these by id, and
    `spans` tells of each passage its document's id and its place there, for models that read documents whole.
    """

    name: str
    passages: Mapping[str, str]
    asked: Sequence[Asked]
    openings: Mapping[str, str] = field(default_factory=dict)
    documents: Mapping[str, Document] = field(default_factory=dict)
    spans: Mapping[str, tuple[str, Span]] = field(default_factory=dict)

    def with_openings(self) -> Task:
        """The same with every passage under the opening of its document, as CDV and a Longformer know it.

        Candidates are as they were.
        """
        passages = {id: under(text, self.openings.get(id, "")) for id, text in self.passages.items()}
        return replace(self, name=f"{self.name}, with openings", passages=passages)

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each passage stands, which orders those with the same score."""
        return {id: place for place, id in enumerate(self.passages)}

    @property
    def entities(self) -> set[str]:
        """What is asked about, which a model must not have been trained on."""
        return {asked.entity for asked in self.asked if asked.entity}


def candidates(
    relevant: Iterable[str], found: Sequence[str], document: Mapping[str, Sequence[str]], of: Mapping[str, str]
) -> tuple[str, ...]:
    """The candidates of CDV, 64 at most, in its order.

    All that answer; the best that BM25 finds, and every passage of its document; then the rest of BM25's list.

    Args:
        relevant: passages that answer.
        found: BM25's list, best first.
        document: the passages of each document.
        of: the document of each passage.

    Reference: Arnold et al. (CDV), and its released code.
    """
    rest = [*found[:1], *(document[of[found[0]]] if found else ()), *found[1:]]
    return tuple(dict.fromkeys((*relevant, *rest)))[:CANDIDATES]

"""A ranking task: queries, and for each the passages to rank and those that answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from capr.annotate.query import Query
from capr.documents import Document, Span
from capr.segment import with_labels

CANDIDATES = 64
FORMS = ("tuple", "question")
Run = dict[str, dict[str, float]]  # the score of each passage, by query
Progress = Callable[[int, int], None]  # takes the number of queries done, and of all queries
OnTask = Callable[["Task"], None]  # takes the task before its queries are ranked


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """A query of a task.

    Attributes:
        id: the id of the query in runs and qrels.
        entity: the entity of the query.
        aspect: the aspect of the query, worded like a heading.
        question: the query in the words of the source; empty if the source has none.
        relevant: the ids of the passages that answer the query.
        candidates: the ids of the passages to rank; empty for all passages.
        groups: the groups that results are reported by, such as aspect and source.
        grades: the grades of relevant passages, from 1; a missing grade is 1.
        sentences: the sentences that answer, by relevant passage, as spans of the passage's text.
    """

    id: str
    entity: str
    aspect: str
    question: str
    relevant: frozenset[str]
    candidates: tuple[str, ...] = ()
    groups: Mapping[str, str] = field(default_factory=dict)
    grades: Mapping[str, int] = field(default_factory=dict)
    sentences: Mapping[str, tuple[Span, ...]] = field(default_factory=dict)

    def grade(self, passage: str) -> int:
        """Return the grade of a passage; 0 if it is not relevant."""
        return self.grades.get(passage, 1) if passage in self.relevant else 0

    def query(self, form: str) -> Query:
        """Return the query as a tuple or as a question; a query without a question is always a tuple."""
        if form == "question" and self.question:
            return Query(self.question)
        return Query(entity=self.entity, aspect=self.aspect) if self.entity or self.aspect else Query(self.question)


@dataclass(frozen=True)
class Task:
    """The passages, queries and labels of a protocol.

    Attributes:
        name: the name of the task in reports.
        passages: the texts to rank, by passage id.
        queries: the queries with their candidates and labels.
        openings: the opening of each passage's document, except for passages that begin their document.
        documents: the documents by id, for models that read whole documents.
        spans: the document id and the span of each passage, for models that read whole documents.
        sentences: the sentences of each passage as spans of its text, for models that also rank sentences.
        notices: what the user should know about the data.
    """

    name: str
    passages: Mapping[str, str]
    queries: Sequence[TaskQuery]
    openings: Mapping[str, str] = field(default_factory=dict)
    documents: Mapping[str, Document] = field(default_factory=dict)
    spans: Mapping[str, tuple[str, Span]] = field(default_factory=dict)
    sentences: Mapping[str, tuple[Span, ...]] = field(default_factory=dict)
    notices: Sequence[str] = ()

    def with_openings(self) -> Task:
        """Return the task with every passage under the opening of its document; the candidates stay the same.

        CDV and a Longformer see this context, too.
        """
        passages = {id: with_labels(text, self.openings.get(id, "")) for id, text in self.passages.items()}
        return replace(self, name=f"{self.name}, with openings", passages=passages)

    def of_sentences(self) -> Task:
        """Return a task that ranks the sentences of the candidates; gold sentences are relevant.

        The task leaves out queries without a gold sentence. A sentence's id is its passage's id with the span.
        """
        texts = {
            sentence_id(id, span): span.of(self.passages[id]) for id, spans in self.sentences.items() for span in spans
        }
        queries = []
        for query in self.queries:
            gold = frozenset(sentence_id(id, span) for id, spans in query.sentences.items() for span in spans)
            ids = query.candidates or tuple(self.passages)
            candidates = tuple(sentence_id(id, span) for id in ids for span in self.sentences.get(id, ()))
            if gold:
                queries.append(replace(query, relevant=gold, candidates=candidates, grades={}, sentences={}))
        return Task(f"{self.name}, sentences", texts, queries)

    @cached_property
    def positions(self) -> dict[str, int]:
        """The position of each passage, which orders passages with the same score."""
        return {id: position for position, id in enumerate(self.passages)}

    @property
    def entities(self) -> set[str]:
        """The entities of all queries, which must be absent from the training data of a model."""
        return {query.entity for query in self.queries if query.entity}


def sentence_id(passage: str, span: Span) -> str:
    """Return the id of a sentence of a passage.

    >>> sentence_id("n1:0", Span(5, 9))
    'n1:0[5:9]'
    """
    return f"{passage}[{span.begin}:{span.end}]"


def candidates(
    relevant: Iterable[str],
    ranking: Sequence[str],
    members: Mapping[str, Sequence[str]],
    document_of: Mapping[str, str],
) -> tuple[str, ...]:
    """Return the candidates of CDV, at most 64, in its order.

    These are all relevant passages, then BM25's best passage and every passage of its document, then the rest of BM25's
    ranking.

    Args:
        relevant: the relevant passages.
        ranking: BM25's ranking, best first.
        members: the passages of each document.
        document_of: the document of each passage.

    Reference: Arnold et al. (CDV), and its released code.
    """
    rest = [*ranking[:1], *(members[document_of[ranking[0]]] if ranking else ()), *ranking[1:]]
    return tuple(dict.fromkeys((*relevant, *rest)))[:CANDIDATES]

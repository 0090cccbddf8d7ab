"""The resources that all operations of a library share: adding, searching, asking and the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from capr.annotate import Query, Vocabulary
from capr.annotate.gazetteer import Gazetteer
from capr.annotate.mentions import Annotator, annotator
from capr.documents import CaprError
from capr.index import Filters, Index
from capr.index.filters import clean, field_name
from capr.search.conditions import check_dates, resolve
from capr.search.models import Models
from capr.search.parse import ParsedQuery, Parser
from capr.search.sentence_scores import SentenceScorer

GivenFilters = Filters | Mapping[str, Any] | Iterable[str] | str | None


@dataclass(eq=False)
class Resources:
    """The resources of an operation: an index with its models, and the parser of queries and filters.

    Attributes:
        folder: the folder or the address of the library, for messages.
        index: the index of all documents, or of a part of them, as if there were no others.
        models: the models of the library.
        vocabulary: the names of entities.
        sentence_scorer: the scorer of sentences, which caches the vectors of the last documents.
    """

    folder: str | Path
    index: Index
    models: Models
    vocabulary: Vocabulary
    sentence_scorer: SentenceScorer = field(default_factory=SentenceScorer)

    def annotator(self, tagger: bool = False) -> Annotator:
        """Return the annotator; with the tagger, it also finds entities that the vocabulary lacks."""
        return annotator(tagger, self.vocabulary)

    @cached_property
    def gazetteer(self) -> Gazetteer:
        """The gazetteer, which finds the names of entities in a text."""
        return self.annotator().gazetteer

    @cached_property
    def parser(self) -> Parser:
        """The parser of queries, which knows only the metadata fields of the documents in the index."""

        def rarity(words: list[str]) -> list[float]:
            return list(self.index.rarity(self.index.stems(words)))

        return Parser(self.gazetteer, lambda name: self.index.has(field_name(name)), rarity)

    def parse(self, query: str | Query) -> tuple[Query, ParsedQuery]:
        """Return a query without halves of surrogate pairs, and its interpretation."""
        cleaned = Query(clean(query)) if isinstance(query, str) else query
        return cleaned, self.parser.parse(cleaned)

    def filters(self, given: GivenFilters, check: bool = True) -> Filters:
        """Return the filters, with entities and patterns (*) resolved in this library.

        Args:
            given: the filters.
            check: whether a date that is none is an error. Filters in a query never are, and those of a token were
                checked when it was created.

        Raises:
            CaprError: a value of `date` is not a date, and no document has it.
        """
        filters = resolve(Filters.of(given), self.index, self.vocabulary)
        if check:
            check_dates(filters, self.index)
        return filters

    def document_filters(self, given: GivenFilters) -> Filters:
        """Return the filters of an operation without a query.

        Raises:
            CaprError: the filters contain `without`, which needs the entity of a query.
        """
        filters = self.filters(given)
        if filters.without:
            raise CaprError("`without` is about the entity of a query, and there is no query here. Fix: leave it out.")
        return filters

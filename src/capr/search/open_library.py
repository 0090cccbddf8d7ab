"""An open library: its engine and its models, a part of it, and the maintenance of its files."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Self

from capr.annotate import Vocabulary
from capr.documents import CaprError
from capr.index import FilteredIndex, Filters, Index, Stats, Verification, maintained, open_index
from capr.index.engines import FOLDER, scheme_of
from capr.runtime.discourse import Discourse
from capr.runtime.encoder import Encoder
from capr.runtime.ranker import Ranker
from capr.runtime.reader import AnswerReader
from capr.search.models import Models
from capr.search.resources import GivenFilters, Resources
from capr.search.sentence_scores import SentenceScorer
from capr.segment import Cutting

GivenEncoder = Encoder | str | os.PathLike[str] | None
GivenRanker = Ranker | str | os.PathLike[str] | None
GivenDiscourse = Discourse | str | os.PathLike[str] | None
GivenReader = AnswerReader | str | os.PathLike[str] | None


class OpenLibrary:
    """The engine of a library, opened on first use, and its models; see `Library`."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        encoder: GivenEncoder = None,
        ranker: GivenRanker = None,
        discourse: GivenDiscourse = None,
        reader: GivenReader = None,
        vocabulary: Vocabulary | None = None,
        max_words: int | None = None,
    ) -> None:
        self.location = os.fspath(path)
        self.path = Path(path)
        self.cutting = None if max_words is None else Cutting(max_words)
        self.vocabulary = vocabulary or Vocabulary.load()
        self._name = str(self.path) if scheme_of(self.location) == FOLDER else self.location  # for messages
        self.models = Models(self._name, encoder, ranker, discourse, reader)
        self._index: Index | None = None
        self._part: FilteredIndex | None = None
        self._sentence_scorer = SentenceScorer()
        self._resources: Resources | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files."""
        if self._index is not None and self._part is None:
            self._index.close()
            self._index = self._resources = None

    def create(self) -> None:
        """Create the folder of the library unless it exists.

        Raises:
            CaprError: the user named a model that does not exist. The folder is not created.
        """
        self.models.check()
        if self._index is None and self._part is None:
            self._index = open_index(self.location, create=True)

    def use(self, encoder: GivenEncoder = None, discourse: GivenDiscourse = None) -> None:
        """Use other models from now on, as if the library had been opened with them."""
        if encoder is not None:
            self.models = self.models.with_encoder(encoder)
        if discourse is not None:
            self.models = self.models.with_discourse(discourse)

    @property
    def engine(self) -> Index:
        """The engine with all documents, for changes and checks.

        Raises:
            CaprError: this is a part of a library, or the library does not exist.
        """
        if self._part is not None:
            raise CaprError("a part of a library cannot be changed. Fix: change the library itself.")
        if self._index is None:
            self._index = open_index(self.location)
        return self._index

    @property
    def index(self) -> Index:
        """The index for reading and searching: the engine, or the part of it that this library shows."""
        return self.engine if self._part is None else self._part

    @property
    def resources(self) -> Resources:
        """The resources of an operation: the index, the models, and the parser of queries and filters."""
        index, resources = self.index, self._resources
        if resources is None or resources.index is not index or resources.models is not self.models:
            resources = Resources(self._name, index, self.models, self.vocabulary, self._sentence_scorer)
            self._resources = resources
        return resources

    def stats(self, filters: GivenFilters = None) -> Stats:
        """Return the numbers of documents, passages and vectors, of all documents or those that match the filters."""
        return self.index.stats(self.resources.document_filters(filters))

    def verify(self, repair: bool = False, on_progress: Callable[[int, int], None] | None = None) -> Verification:
        """Check the library: texts, spans, vectors and derived indexes against each other.

        Args:
            repair: rebuild a derived index that is wrong.
            on_progress: called with the number of documents checked, and of all documents.
        """
        return maintained(self.engine, self.location).verify(repair, on_progress)

    def compact(self) -> int:
        """Free the disk space of removed documents, and return the number of bytes."""
        return maintained(self.engine, self.location).compact()

    def within(self, filters: GivenFilters) -> Self:
        """Return the documents that match the filters as a library of their own, which knows of no others.

        The part costs nothing to create, shares files and models with the whole library, and is read-only. Filters on
        passages, such as `aspect`, raise `CaprError`.

        Example:
            >>> import tempfile
            >>> from capr.documents import Document
            >>> from capr.search import Library
            >>> library = Library(tempfile.mkdtemp() + "/notes")
            >>> notes = [Document(f"n{i}", "PLAN: Rest.", metadata={"patient": f"p{i}"}) for i in range(3)]
            >>> library.add(notes).added, library.within({"patient": "p1"}).stats().documents
            (3, 1)
        """
        part = copy(self)
        resolved_filters = self.resources.filters(filters, check=not isinstance(filters, Filters))
        if resolved_filters or resolved_filters.without:  # FilteredIndex refuses `without` with a message
            part._part = FilteredIndex(self.index, resolved_filters)
        return part

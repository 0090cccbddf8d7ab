"""The base classes of protocols, so that one command serves all protocols that rank passages.

A protocol is a frozen dataclass of one of two kinds, `CandidateProtocol` or `LibraryProtocol`. Its fields are its
settings. A field made by `option` becomes an option of `capr evaluate NAME`. The docstring is the help of that command,
with an example. `capr.evaluate.protocols` lists all protocols.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from capr.documents import Document
from capr.evaluate.task import FORMS, OnTask, Progress, Run, Task
from capr.models.family import option

# Reads the documents of a path. Takes the path, the format (None to recognise it) and the columns (FIELD=NAME).
ReadDocuments = Callable[[Path, str | None, Sequence[str]], Iterable[Document]]


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """The common part of both kinds of protocol.

    Attributes:
        forms: the forms of the queries that the protocol has, the default first.
        limited: whether the protocol can run on its first queries only.
        whole: whether passages have documents, so that models can see the openings of the documents, and discourse
            models can find answers without the boundaries of passages.
    """

    forms: ClassVar[Sequence[str]] = FORMS
    limited: ClassVar[bool] = True
    whole: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True)
class CandidateProtocol(Protocol, ABC):
    """A protocol that lists the candidates of each query, which a model ranks without a library.

    Attributes:
        data: the path of the data set.
    """

    data: Path = option(help="The data set.", metavar="PATH")

    @abstractmethod
    def task(self, read: ReadDocuments) -> Task:
        """Return the whole test. `read` reads documents and reports what it cannot read to the user."""


@dataclass(frozen=True, kw_only=True)
class LibraryProtocol(Protocol, ABC):
    """A protocol that searches a library."""

    @abstractmethod
    def ask(
        self, model: str, form: str, fusion: str, limit: int, progress: Progress, on_task: OnTask
    ) -> tuple[Task, Run]:
        """Return the task, and the run of a library on it.

        Args:
            model: the models of the library, such as `bm25+encoder>ranker`.
            form: the form of the queries, one of `forms`.
            fusion: the method that joins the scores of words and vectors.
            limit: the maximum number of queries; 0 for all.
            progress: a function that takes the number of queries done, and of all queries.
            on_task: a function that takes the task before the first search, and raises CaprError to stop.
        """

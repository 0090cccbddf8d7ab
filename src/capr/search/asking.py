"""Asking: choose what to read for a question, from documents or a library, and return the answers."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from capr.annotate import Vocabulary
from capr.annotate.mentions import annotator
from capr.deprecation import renamed_arguments
from capr.documents import CaprError, Document, Notice, Problem, ReadError, read
from capr.index import Filters
from capr.index.filters import ID, Condition, clean
from capr.runtime.reader import AnswerReader
from capr.search import passages
from capr.search.answering import answer_question
from capr.search.answers import Answers
from capr.search.conditions import unknown_value_notices, unmatched_filter_notices
from capr.search.contents import document as document_of
from capr.search.finding import find
from capr.search.models import answer_reader
from capr.search.paragraphs import MOST, WHOLE, all_passages, cut_documents, passages_of_hits
from capr.search.resources import GivenFilters, Resources

PASSAGES = 20  # passages to read if a search chooses them
LONGEST = 1000  # characters of a question
LARGEST = 100  # answers
SHOWN = 8  # ids in the message about an unknown document
OPERATOR = re.compile(r'"|(?<!\S)[+-]+|(?<=\w):(?=\w)')  # the operators of queries, which mean nothing in a question


@dataclass(frozen=True, slots=True)
class AskOptions:
    """The options of asking; see `ask` and `Library.ask`."""

    k: int = 3
    threshold: float | None = None
    passages: int = PASSAGES

    def __post_init__(self) -> None:
        problems = []
        if type(self.k) is not int or not 1 <= self.k <= LARGEST:
            problems.append(f"k is {self.k!r}. Fix: ask for 1 to {LARGEST} answers.")
        if type(self.passages) is not int or not 1 <= self.passages <= MOST:
            problems.append(f"passages is {self.passages!r}. Fix: read 1 to {MOST:,} passages.")
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            problems.append(f"the threshold is {self.threshold!r}. Fix: use a confidence from 0 to 1.")
        if problems:
            raise CaprError(" ".join(problems))


@renamed_arguments(top="k")
def ask(
    documents: Document | str | os.PathLike[str] | Iterable[Document],
    question: str,
    *,
    document: str | None = None,
    k: int = 3,
    reader: AnswerReader | str | os.PathLike[str] | None = None,
    threshold: float | None = None,
    vocabulary: Vocabulary | None = None,
) -> Answers:
    """Answer a question from documents that are in no library; the reader reads every passage.

    Args:
        documents: one document or several, or a file or folder to read.
        question: in plain words.
        document: the id of the only document to read; default: all.
        k: the maximum number of answers.
        reader: a folder or an `AnswerReader`; default: the built-in reader.
        threshold: the minimum confidence of an answer; default: the threshold of the reader.
        vocabulary: a vocabulary with your own names, which recognises the mentions in answers.

    Raises:
        CaprError: there is no question, no document or no reader, or there is too much to read.
    """
    start = time.perf_counter()
    options = AskOptions(k, threshold)
    cleaned = clean_question(question)
    model = answer_reader(reader)
    notices: list[str] = []
    selected = _select(_read_documents(documents, notices), document)
    gazetteer = annotator(False, vocabulary or Vocabulary.load()).gazetteer
    items = list(cut_documents(selected))
    return answer_question(cleaned, items, model, gazetteer, options.k, options.threshold, notices, start)


def ask_library(
    resources: Resources,
    question: str,
    options: AskOptions,
    document: str | None = None,
    filters: GivenFilters = None,
    reader: AnswerReader | str | os.PathLike[str] | None = None,
) -> Answers:
    """Answer a question from the documents of a library; see `Library.ask`."""
    start = time.perf_counter()
    cleaned = clean_question(question)
    model = resources.models.reader if reader is None else answer_reader(reader)
    index = resources.index
    resolved_filters, max_characters = resources.filters(filters), float(WHOLE)
    if document is not None:
        resolved_filters &= Filters((Condition(ID, frozenset((document_of(index, document).id,))),))
        max_characters = math.inf
    items = all_passages(index, resolved_filters, max_characters)
    notices = tuple((unmatched_filter_notices if items == [] else unknown_value_notices)(resolved_filters, index))
    if items is None:
        results = find(resources, as_query(cleaned), passages.SearchOptions(options.passages), resolved_filters)
        items, notices = list(passages_of_hits(results, index)), results.notices
    return answer_question(cleaned, items, model, resources.gazetteer, options.k, options.threshold, notices, start)


def clean_question(question: str) -> str:
    """Return a question without the white space around it; raise `CaprError` if it is empty or too long."""
    cleaned = clean(question).strip()
    if not any(map(str.isalnum, cleaned)):
        raise CaprError("there is no question. Fix: write one, in plain words.")
    if len(cleaned) > LONGEST:
        fact = f"the question has {len(cleaned):,} characters, and only {LONGEST:,} are read"
        raise CaprError(f"{fact}. Fix: ask a shorter question.")
    return cleaned


def as_query(question: str) -> str:
    """Return a question without the characters that a search takes for operators.

    >>> as_query('What does "NPO" in patient:p1 mean?')
    'What does  NPO  in patient p1 mean?'
    """
    return OPERATOR.sub(" ", question)


def _read_documents(
    documents: Document | str | os.PathLike[str] | Iterable[Document], notices: list[str]
) -> Iterator[Document]:
    """Yield the documents, or read them from a file or folder.

    Problems of the file become notices; if it contains no document, the first problem is raised.
    """
    if isinstance(documents, Document):
        yield documents
        return
    if not isinstance(documents, str | os.PathLike):
        yield from documents
        return
    problems: list[Problem] = []
    stream = read(documents, on_problem=problems.append)
    yield from stream
    if not stream.documents:
        errors = [problem for problem in problems if not isinstance(problem, Notice)]
        no_document = Problem("there is no document in it", "name a file or folder that has one", str(documents))
        raise ReadError(errors[0] if errors else no_document)
    notices += map(str, problems)


def _select(documents: Iterable[Document], id: str | None) -> Iterator[Document]:
    """Yield all documents, or the one with the id; raise `CaprError` if no document has it."""
    if id is None:
        yield from documents
        return
    ids = []
    for document in documents:
        if document.id == id:
            yield document
            return
        ids.append(document.id)
    known_ids = ", ".join(ids[:SHOWN]) + (", ..." if len(ids) > SHOWN else "")
    raise CaprError(f"there is no document {id!r}. Fix: name one of the documents read ({known_ids or 'none'}).")

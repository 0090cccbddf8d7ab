"""Paragraphs: what is read to answer a question.

A paragraph is a passage, as the library keeps them: whole sentences of one section, of a length that a reader takes in
at once. So a file and a library give the same answers, and an answer lies in what a search finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from capr.documents import CaprError, Document
from capr.index import Filters, Index
from capr.index.filters import PASSAGE_NAMES
from capr.search.hit import Hit
from capr.segment import Passage, passages

MOST = 2000  # that are read for one question
WHOLE = 50_000  # characters of some documents, up to which all is read: a few seconds on two cores


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A passage to read, with its document."""

    document: Document
    passage: Passage

    @property
    def text(self) -> str:
        """What is read."""
        return self.document[self.passage.span]


def cut(documents: Iterable[Document]) -> Iterator[Paragraph]:
    """All paragraphs of documents that are in no library.

    Raises:
        CaprError: there are too many.
    """
    count = 0
    for document in documents:
        for passage in passages(document):
            count += 1
            if count > MOST:
                fix = "put it into a library (capr index), which chooses what to read, or name one document"
                raise CaprError(f"there are more than {MOST:,} passages to read. Fix: {fix}.")
            yield Paragraph(document, passage)


def every(index: Index, filters: Filters, characters: float) -> list[Paragraph] | None:
    """All paragraphs of the documents that pass filters.

    None if these have more characters, or if the filters are about passages, so that a search has to choose.
    """
    about_passages = any(condition.name in PASSAGE_NAMES for condition in filters.conditions)
    if not filters or about_passages or filters.entities or filters.without:
        return None
    found: list[Paragraph] = []
    for document in index.documents(filters):
        found += [Paragraph(document, stored.entry.passage) for stored in index.passages_in(document.id)]
        characters -= len(document.text)
        if characters < 0 or len(found) > MOST:
            return None
    return found


def found_by(hits: Iterable[Hit], index: Index) -> Iterator[Paragraph]:
    """The paragraphs that a search found; what was removed or exchanged meanwhile is left out."""
    known: dict[str, Document | None] = {}
    for hit in hits:
        if hit.document not in known:
            known[hit.document] = index.document(hit.document)
        document = known[hit.document]
        if document is not None and document[hit.passage.span] == hit.text:
            yield Paragraph(document, hit.passage)

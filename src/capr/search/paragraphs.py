"""Paragraphs: the passages that are read to answer a question, joined for the reader.

An answer lies in a passage of the library, which a search can find: whole sentences of one section, short enough for a
reader. The reader reads short neighbouring passages together, as a paragraph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from capr.documents import CaprError, Document, Span
from capr.index import Filters, Index
from capr.index.filtered import about_passages
from capr.search.hit import Hit
from capr.segment import Passage, passages
from capr.segment.paragraphs import LENGTH, group_spans

MOST = 2000  # passages to read for one question
WHOLE = 50_000  # characters of documents that are read without a search: a few seconds on two cores


@dataclass(frozen=True, slots=True)
class PassageToRead:
    """A passage to read, with its document."""

    document: Document
    passage: Passage

    @property
    def text(self) -> str:
        """The text of the passage."""
        return self.document[self.passage.span]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Neighbouring passages of a document, read together: their surroundings make a reader surer."""

    passages: Sequence[PassageToRead]

    @property
    def span(self) -> Span:
        """The span from the first passage to the last."""
        return Span(self.passages[0].passage.span.begin, self.passages[-1].passage.span.end)

    @property
    def text(self) -> str:
        """The text of the span."""
        return self.passages[0].document[self.span]

    def locate(self, answer: Span) -> tuple[PassageToRead, Span]:
        """Return the passage in which an answer begins, and the span of the answer in the document.

        The span ends with the passage at the latest.

        Args:
            answer: the span of an answer in the text of the paragraph.
        """
        begin, end = (self.span.begin + min(max(0, offset), len(self.text)) for offset in answer)
        candidates = [item for item in self.passages if item.passage.span.begin <= begin]
        first = candidates[-1] if candidates else self.passages[0]
        return first, Span(begin, min(end, first.passage.span.end))


def join_passages(items: Iterable[PassageToRead], length: int = LENGTH) -> list[Paragraph]:
    """Join neighbouring passages of each document to paragraphs of up to `length` characters."""
    by_document: dict[int, list[PassageToRead]] = {}
    for item in items:
        by_document.setdefault(id(item.document), []).append(item)
    paragraphs: list[Paragraph] = []
    for own_items in by_document.values():
        own_items.sort(key=lambda item: item.passage.span)
        spans = (item.passage.span for item in own_items)
        rest = iter(own_items)
        for group in group_spans(own_items[0].document.text, spans, length):
            paragraphs.append(Paragraph(list(islice(rest, len(group)))))
    return paragraphs


def cut_documents(documents: Iterable[Document]) -> Iterator[PassageToRead]:
    """Yield the passages of documents that are in no library.

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
            yield PassageToRead(document, passage)


def all_passages(index: Index, filters: Filters, max_characters: float) -> list[PassageToRead] | None:
    """Return all passages of the documents that match the filters, or None if a search has to choose.

    A search has to choose if the documents have more characters or passages than allowed, if there are no filters, or
    if the filters are about passages.
    """
    if not filters or about_passages(filters):
        return None
    items: list[PassageToRead] = []
    for document in index.documents(filters):
        items += [PassageToRead(document, stored.entry.passage) for stored in index.passages_in(document.id)]
        max_characters -= len(document.text)
        if max_characters < 0 or len(items) > MOST:
            return None
    return items


def passages_of_hits(hits: Iterable[Hit], index: Index) -> Iterator[PassageToRead]:
    """Yield the passages of hits, except from documents that were removed or replaced since the search."""
    documents: dict[str, Document | None] = {}
    for hit in hits:
        if hit.document not in documents:
            documents[hit.document] = index.document(hit.document)
        document = documents[hit.document]
        if document is not None and document[hit.passage.span] == hit.text:
            yield PassageToRead(document, hit.passage)

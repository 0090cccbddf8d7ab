"""Paragraphs: the passages that are read to answer a question.

A paragraph is a passage of the library: whole sentences of one section, short enough for a reader. An answer therefore
lies in a passage that a search can find. The reader reads short neighbouring paragraphs together, as a group.
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
class Paragraph:
    """A passage to read, with its document."""

    document: Document
    passage: Passage

    @property
    def text(self) -> str:
        """The text of the passage."""
        return self.document[self.passage.span]


@dataclass(frozen=True, slots=True)
class ParagraphGroup:
    """Neighbouring paragraphs of a document, read together: their surroundings make a reader surer."""

    paragraphs: Sequence[Paragraph]

    @property
    def span(self) -> Span:
        """The span from the first paragraph to the last."""
        return Span(self.paragraphs[0].passage.span.begin, self.paragraphs[-1].passage.span.end)

    @property
    def text(self) -> str:
        """The text of the span."""
        return self.paragraphs[0].document[self.span]

    def locate(self, answer: Span) -> tuple[Paragraph, Span]:
        """Return the paragraph in which an answer begins, and the span of the answer in the document.

        The span ends with the paragraph at the latest.

        Args:
            answer: the span of an answer in the text of the group.
        """
        begin, end = (self.span.begin + min(max(0, offset), len(self.text)) for offset in answer)
        candidates = [paragraph for paragraph in self.paragraphs if paragraph.passage.span.begin <= begin]
        paragraph = candidates[-1] if candidates else self.paragraphs[0]
        return paragraph, Span(begin, min(end, paragraph.passage.span.end))


def group_paragraphs(paragraphs: Iterable[Paragraph], length: int = LENGTH) -> list[ParagraphGroup]:
    """Group neighbouring paragraphs of each document, up to `length` characters a group."""
    by_document: dict[int, list[Paragraph]] = {}
    for paragraph in paragraphs:
        by_document.setdefault(id(paragraph.document), []).append(paragraph)
    groups: list[ParagraphGroup] = []
    for own_paragraphs in by_document.values():
        own_paragraphs.sort(key=lambda paragraph: paragraph.passage.span)
        spans = (paragraph.passage.span for paragraph in own_paragraphs)
        rest = iter(own_paragraphs)
        for group in group_spans(own_paragraphs[0].document.text, spans, length):
            groups.append(ParagraphGroup(list(islice(rest, len(group)))))
    return groups


def cut_documents(documents: Iterable[Document]) -> Iterator[Paragraph]:
    """Yield the paragraphs of documents that are in no library.

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


def all_paragraphs(index: Index, filters: Filters, max_characters: float) -> list[Paragraph] | None:
    """Return all paragraphs of the documents that match the filters, or None if a search has to choose.

    A search has to choose if the documents have more characters or passages than allowed, if there are no filters, or
    if the filters are about passages.
    """
    if not filters or about_passages(filters):
        return None
    paragraphs: list[Paragraph] = []
    for document in index.documents(filters):
        paragraphs += [Paragraph(document, stored.entry.passage) for stored in index.passages_in(document.id)]
        max_characters -= len(document.text)
        if max_characters < 0 or len(paragraphs) > MOST:
            return None
    return paragraphs


def paragraphs_of_hits(hits: Iterable[Hit], index: Index) -> Iterator[Paragraph]:
    """Yield the paragraphs of hits, except from documents that were removed or replaced since the search."""
    documents: dict[str, Document | None] = {}
    for hit in hits:
        if hit.document not in documents:
            documents[hit.document] = index.document(hit.document)
        document = documents[hit.document]
        if document is not None and document[hit.passage.span] == hit.text:
            yield Paragraph(document, hit.passage)

"""Paragraphs: what is read to answer a question.

A paragraph is a passage, as the library keeps them: whole sentences of one section, of a length that a reader takes in
at once. So an answer lies in what a search finds. Short neighbours are read together, as one stretch of the document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from capr.documents import CaprError, Document, Span
from capr.index import Filters, Index
from capr.index.filters import PASSAGE_NAMES
from capr.search.hit import Hit
from capr.segment import Passage, passages
from capr.segment.paragraphs import LENGTH, together

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


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring passages of a document, which are read together: a reader is surer of what it sees in its place."""

    paragraphs: Sequence[Paragraph]

    @property
    def span(self) -> Span:
        """From the first to the last."""
        return Span(self.paragraphs[0].passage.span.begin, self.paragraphs[-1].passage.span.end)

    @property
    def text(self) -> str:
        """What is read."""
        return self.paragraphs[0].document[self.span]

    def placed(self, read: Span) -> tuple[Paragraph, Span]:
        """The passage in which something begins that was read in the text, and its range of the document therein."""
        begin, end = (self.span.begin + min(max(0, place), len(self.text)) for place in read)
        own = [one for one in self.paragraphs if one.passage.span.begin <= begin]
        paragraph = own[-1] if own else self.paragraphs[0]
        return paragraph, Span(begin, min(end, paragraph.passage.span.end))


def stretches(paragraphs: Iterable[Paragraph], length: int = LENGTH) -> list[Stretch]:
    """Passages together with their neighbours, as long as they have no more than so many characters together."""
    documents: dict[int, list[Paragraph]] = {}
    for paragraph in paragraphs:
        documents.setdefault(id(paragraph.document), []).append(paragraph)
    found: list[Stretch] = []
    for some in documents.values():
        some.sort(key=lambda one: one.passage.span)
        groups = together(some[0].document.text, (one.passage.span for one in some), length)
        left = iter(some)
        found += [Stretch(list(islice(left, len(group)))) for group in groups]
    return found


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

"""Adding: read, prepare and encode documents, and store them in batches."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from capr.annotate.mentions import Annotator
from capr.documents import Document, Notice, Problem, read
from capr.index import SENTENCES, Index, PreparedDocument, Writer
from capr.index.prepare import add_passage_vectors, add_sentence_vectors, prepare, set_encoder
from capr.search import batches
from capr.search.models import Models
from capr.segment import Cutting
from capr.text.digest import as_text, digest

DocumentSource = Document | str | os.PathLike[str]


@dataclass
class AddResult:
    """The outcome of adding documents.

    Attributes:
        added: the number of new documents.
        replaced: the number of documents that replaced one with other contents or another cutting.
        unchanged: the number of documents that the library had already.
        passages: the number of passages of the added and replaced documents.
        encoded: the number of passages that the encoder read; the vectors of other passages were known.
        sentences: the number of sentences that the discourse model read; the vectors of other sentences were known.
        problems: the documents that could not be added, with the cause.
    """

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    passages: int = 0
    encoded: int = 0
    sentences: int = 0
    problems: list[Problem] = field(default_factory=list)


def add(
    documents: DocumentSource | Iterable[DocumentSource],
    index: Index,
    writer: Writer,
    models: Models,
    annotator: Annotator,
    cutting: Cutting | None = None,
    *,
    replace: bool = False,
    on_commit: Callable[[Sequence[str]], None] | None = None,
    on_problem: Callable[[Problem], None] | None = None,
) -> AddResult:
    """Add documents to an index; see `Library.add`. The default cutting is the one that the index remembers."""
    outcome = AddResult()
    if cutting is not None and cutting != index.cuttings()[-1]:
        writer.set_cutting(cutting)
    encoder = models.encoder_for_adding(index)
    if encoder is not None:
        set_encoder(writer, encoder)
    discourse = models.discourse_for_adding(index)
    if discourse is not None:
        writer.set_encoder(discourse.identity, SENTENCES)
    writer.commit()

    def report(problem: Problem) -> None:
        if not isinstance(problem, Notice):
            outcome.problems.append(problem)
        if on_problem:
            on_problem(problem)

    batch_size = batches.PLAIN if encoder is None and discourse is None else batches.ENCODED
    for batch in _batches(_read_sources(documents, report), index, annotator, replace, batch_size, outcome, report):
        if encoder is not None:
            batch, count = add_passage_vectors(batch, encoder, index)
            outcome.encoded += count
        if discourse is not None:
            batch, count = add_sentence_vectors(batch, discourse, index)
            outcome.sentences += count
        for prepared_document in batch:
            writer.add(prepared_document)
        writer.commit()
        if on_commit:
            on_commit([prepared_document.document.id for prepared_document in batch])
    return outcome


def _batches(
    documents: Iterable[Document],
    index: Index,
    annotator: Annotator,
    replace: bool,
    batch_size: int,
    outcome: AddResult,
    report: Callable[[Problem], None],
) -> Iterator[list[PreparedDocument]]:
    """Prepare new and changed documents, and yield them in batches of about `batch_size` passages.

    Count the documents in `outcome`, and report the documents that cannot be added.
    """
    *earlier_cuttings, cutting = index.cuttings()
    batch: dict[str, PreparedDocument] = {}
    size, start = 0, time.monotonic()
    for document, problem, digests in _with_digests(documents, index):
        if problem:
            report(problem)
            continue
        document_digest = digest(document, cutting.as_json())
        pending = batch.get(document.id)
        known_digest = pending.digest if pending else digests.get(document.id)
        if known_digest == document_digest:
            outcome.unchanged += 1
            continue
        has_other_cutting = known_digest is not None and known_digest in (
            digest(document, earlier.as_json()) for earlier in earlier_cuttings
        )
        if known_digest is not None and not replace and not has_other_cutting:
            file = str(document.metadata.get("file", ""))
            fact = f"the library has a document {document.id!r} with other contents"
            report(Problem(fact, "replace it (--replace), or give it another id", file, record=document.id))
            continue
        prepared_document = prepare(document, annotator, document_digest, cutting)
        batch[document.id] = prepared_document
        digests[document.id] = document_digest  # a later document may have the same id
        outcome.replaced += known_digest is not None
        outcome.added += known_digest is None
        outcome.passages += len(prepared_document.entries)
        size += len(prepared_document.entries)
        is_late = time.monotonic() > start + batches.SECONDS
        if size >= batch_size or len(batch) >= batches.PLAIN or is_late:
            yield list(batch.values())
            batch, size, start = {}, 0, time.monotonic()
    if batch:
        yield list(batch.values())


def _with_digests(
    documents: Iterable[Document], index: Index
) -> Iterator[tuple[Document, Problem | None, dict[str, bytes]]]:
    """Yield each document with its problem, if any, and the digests that the index has for its group of documents."""
    for group in _lookup_groups(documents):
        digests = dict(index.digests([document.id for document, problem in group if problem is None]))
        for document, problem in group:
            yield document, problem, digests


def _lookup_groups(documents: Iterable[Document]) -> Iterator[list[tuple[Document, Problem | None]]]:
    """Yield groups of documents to look up together, and the problems of invalid documents.

    A group of documents that are long, or slow to read, is small.
    """
    group: list[tuple[Document, Problem | None]] = []
    size, start = 0, time.monotonic()
    for document in documents:
        problem = _problem(document)
        group.append((document, problem))
        size += len(document.text) if problem is None else 0
        if len(group) >= batches.LOOKED_UP or size >= batches.LONG or time.monotonic() > start + batches.SECONDS:
            yield group
            group, size, start = [], 0, time.monotonic()
    if group:
        yield group


def _read_sources(
    sources: DocumentSource | Iterable[DocumentSource], report: Callable[[Problem], None]
) -> Iterator[Document]:
    """Yield the documents, and read those of files and folders."""
    for source in [sources] if isinstance(sources, Document | str | os.PathLike) else sources:
        if isinstance(source, Document):
            yield source
        else:
            yield from read(source, on_problem=report)


def _problem(document: Document) -> Problem | None:
    """Return why a document cannot be stored, or None if it can."""
    if not all(isinstance(part, str) for part in (document.id, document.title, document.text)):
        return Problem("id, title and text must be strings", "convert them to strings", record=ascii(document.id))
    if not document.id.strip():
        return Problem("a document has no id", "give it one", str(document.metadata.get("file", "")))
    try:
        values = as_text([document.metadata, [a.value for a in document.annotations]])
        for part in (document.id, document.title, document.text, values):
            part.encode()
    except (TypeError, ValueError, RecursionError) as error:
        if not isinstance(error, UnicodeEncodeError):
            fact = f"its metadata cannot be stored ({error})"
            return Problem(fact, "use only names and values that JSON can represent", record=ascii(document.id))
        fact = f"it holds half of a surrogate pair, U+{ord(error.object[error.start]):04X}"
        return Problem(fact, "write the character itself", record=ascii(document.id))
    return None

"""Prepare documents for an index: cut, annotate and encode them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from capr.annotate.mentions import Annotator
from capr.documents import Document, Span
from capr.index.protocol import Index, Writer
from capr.index.records import PassageEntry, PassageVectors, PreparedDocument, SpanVectors
from capr.index.spaces import PASSAGES, PIECES, SENTENCES, Space
from capr.runtime.discourse import Discourse
from capr.runtime.encoder import Encoder, late_encoder
from capr.runtime.onnx import Floats
from capr.segment import Cutting, outline, passages, with_labels
from capr.segment.aspects import aspect_of
from capr.text.digest import content
from capr.text.words import WORD

MIN_WORDS = 3  # words that a passage needs besides its heading before an encoder reads it under the title


def prepare(
    document: Document, annotator: Annotator, digest: bytes, cutting: Cutting | None = None
) -> PreparedDocument:
    """Return a document with its digest, its passages and their mentions."""
    cutting = cutting or Cutting()
    sections = outline(document)
    mentions = annotator.annotate(document, sections)
    annotated = [section for section in document.annotated("section") if section.value.get("aspect")]
    entries = []
    position = 0
    for passage in passages(document, cutting.max_words, known=sections):
        while position < len(mentions) and mentions[position].span.begin < passage.span.begin:
            position += 1
        end = position
        while end < len(mentions) and mentions[end].span.end <= passage.span.end:
            end += 1
        aspects = [section.value["aspect"] for section in annotated if section.span.covers(passage.span)]
        aspect = aspect_of(str(aspects[-1]) if aspects else passage.heading or "")
        entries.append(PassageEntry(passage, document[passage.span], aspect, tuple(mentions[position:end])))
        position = end
    return PreparedDocument(document, digest, content(document, cutting.as_json()), entries)


def wording(title: str, entry: PassageEntry) -> str:
    """Return the text of a passage for an encoder, under the title and, unless the passage begins with it, the heading.

    A passage with hardly any words besides its heading ("Social History: ___") gets no title, because searches would
    find it by the title alone.
    """
    span = entry.passage.heading_span
    heading = "" if span else entry.passage.heading or ""
    begin = span.end - entry.passage.span.begin if span else 0
    return with_labels(entry.text, title if len(WORD.findall(entry.text, begin)) >= MIN_WORDS else "", heading)


def add_passage_vectors(
    batch: Sequence[PreparedDocument], encoder: Encoder, index: Index
) -> tuple[list[PreparedDocument], int]:
    """Return the documents with passage vectors, and the number of passages that the encoder read.

    The encoder reads no content that already has vectors in the index.
    """

    def encode(documents: Sequence[PreparedDocument]) -> list[Mapping[Space, Sequence[PassageVectors]]]:
        texts = [wording(prepared.document.title, entry) for prepared in documents for entry in prepared.entries]
        by_space = {space: iter(vectors) for space, vectors in encode_texts(texts, encoder).items()}
        return [
            {space: [next(vectors) for _ in prepared.entries] for space, vectors in by_space.items()}
            for prepared in documents
        ]

    batch, new = add_vectors(batch, spaces_of(encoder), encode, index)
    return batch, sum(len(prepared.entries) for prepared in new)


def spaces_of(encoder: Encoder) -> tuple[Space, ...]:
    """Return the spaces that an encoder fills."""
    return (PASSAGES, PIECES) if late_encoder(encoder) else (PASSAGES,)


def encode_texts(texts: Sequence[str], encoder: Encoder) -> dict[Space, Sequence[PassageVectors]]:
    """Return the vectors of texts in each space that the encoder fills."""
    late = late_encoder(encoder)
    if late is None:
        return {PASSAGES: list(encoder.passages(texts))}
    vectors, codes = late.passages_with_pieces(texts)
    return {PASSAGES: list(vectors), PIECES: codes}


def set_encoder(writer: Writer, encoder: Encoder) -> None:
    """Set the model of the spaces that an encoder fills. Drop vectors of word pieces if it makes none."""
    late = late_encoder(encoder)
    writer.set_encoder(encoder.identity)
    writer.set_encoder(late.piece_identity if late else None, PIECES)


def add_sentence_vectors(
    batch: Sequence[PreparedDocument], discourse: Discourse, index: Index
) -> tuple[list[PreparedDocument], int]:
    """Return the documents with sentence vectors, and the number of vectors that the model made.

    The model reads no content that already has vectors in the index.
    """
    count = 0

    def encode(documents: Sequence[PreparedDocument]) -> list[Mapping[Space, Sequence[PassageVectors]]]:
        nonlocal count
        vectors: list[Mapping[Space, Sequence[PassageVectors]]] = []
        for prepared in documents:
            spans = [entry.passage.span for entry in prepared.entries]
            by_passage = sentences_by_passage(prepared.document, spans, discourse)
            vectors.append({SENTENCES: by_passage})
            count += sum(len(sentences.spans) for sentences in by_passage)
        return vectors

    batch, _ = add_vectors(batch, (SENTENCES,), encode, index)
    return batch, count


def add_vectors(
    batch: Sequence[PreparedDocument],
    spaces: Sequence[Space],
    encode: Callable[[Sequence[PreparedDocument]], Sequence[Mapping[Space, Sequence[PassageVectors]]]],
    index: Index,
) -> tuple[list[PreparedDocument], list[PreparedDocument]]:
    """Return the documents with their vectors in the spaces of a model, and the documents that had to be encoded.

    Args:
        batch: the documents.
        spaces: the spaces that the model fills.
        encode: returns, by space, the vectors of each passage of documents. It gets only one document of each new
            content.
        index: has the vectors of known contents.
    """
    known: dict[bytes, Mapping[Space, Sequence[PassageVectors]]] = {}
    new: dict[bytes, PreparedDocument] = {}
    for prepared in batch:
        if prepared.content not in known and prepared.content not in new:
            by_space = {
                space: vectors
                for space in spaces
                if (vectors := index.vectors_of(prepared.content, space)) is not None
                and len(vectors) == len(prepared.entries)
            }
            if len(by_space) == len(spaces):
                known[prepared.content] = by_space
            else:
                new[prepared.content] = prepared
    known.update(zip(new, encode(list(new.values())), strict=True))
    encoded = [replace(prepared, vectors={**prepared.vectors, **known[prepared.content]}) for prepared in batch]
    return encoded, list(new.values())


def sentences_by_passage(document: Document, passages: Sequence[Span], discourse: Discourse) -> list[SpanVectors]:
    """Return the sentences of each passage with their vectors; the model reads the whole document."""
    spans, vectors = discourse.sentences(document)
    return assign_sentences(spans, vectors, passages)


def assign_sentences(spans: Sequence[Span], vectors: Floats, passages: Sequence[Span]) -> list[SpanVectors]:
    """Return the sentences of each passage.

    A sentence belongs to the passage that overlaps most of it. A passage that would get no sentence, because it is a
    small part of one, gets the sentence that it overlaps most.

    Args:
        spans: the sentences, in the order of the text.
        vectors: (sentences, dimensions).
        passages: the passages, in the order of the text, without overlap.
    """
    begins = [passage.begin for passage in passages]
    assigned: list[list[int]] = [[] for _ in passages]
    largest: dict[int, tuple[int, int]] = {}  # by passage, the largest overlap and minus the row of its sentence
    for row, span in enumerate(spans):
        overlaps = []
        index = max(0, bisect_right(begins, span.begin) - 1)
        while index < len(passages) and passages[index].begin < span.end:
            overlap = min(span.end, passages[index].end) - max(span.begin, passages[index].begin)
            if overlap > 0:
                overlaps.append((overlap, -index))
                largest[index] = max(largest.get(index, (0, 0)), (overlap, -row))
            index += 1
        if overlaps:
            assigned[-max(overlaps)[1]].append(row)
    for index, rows in enumerate(assigned):
        if not rows and index in largest:
            rows.append(-largest[index][1])
    return [SpanVectors(tuple(spans[row] for row in rows), vectors[rows]) for rows in assigned]

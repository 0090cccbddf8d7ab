"""Prepares documents to be kept: cuts, annotates and encodes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from capr.annotate.aspects import aspect_of
from capr.annotate.mentions import Annotator
from capr.documents import Document, Span
from capr.index import Discourse, Encoder, Entry, Index, Prepared, Sentences
from capr.index.digest import content
from capr.index.sentences import allotted
from capr.segment import passages, under

FEWEST = 3  # words of a passage beside its heading, to be read under the title of its document
WORD = re.compile(r"[^\W_]+")


def prepared(document: Document, annotator: Annotator, whole: bytes) -> Prepared:
    """A document with its passages and their mentions; `whole` is its digest."""
    mentions = annotator.annotate(document)
    said = [section for section in document.annotated("section") if section.value.get("aspect")]
    entries = []
    position = 0
    for passage in passages(document):
        while position < len(mentions) and mentions[position].span.begin < passage.span.begin:
            position += 1
        inside = position
        while inside < len(mentions) and mentions[inside].span.end <= passage.span.end:
            inside += 1
        named = [section.value["aspect"] for section in said if section.span.covers(passage.span)]
        aspect = aspect_of(str(named[-1]) if named else passage.heading or "")
        entries.append(Entry(passage, document[passage.span], aspect, tuple(mentions[position:inside])))
        position = inside
    return Prepared(document, whole, content(document), entries)


def wording(title: str, entry: Entry) -> str:
    """A passage as an encoder reads it: under its title and its heading, if it does not begin with that.

    One that says next to nothing beside its heading ("Social History: ___") has no title either, by which alone it
    would be found.
    """
    own = entry.passage.heading_span
    heading = "" if own else entry.passage.heading or ""
    begin = own.end - entry.passage.span.begin if own else 0
    return under(entry.text, title if len(WORD.findall(entry.text, begin)) >= FEWEST else "", heading)


def encoded(batch: Sequence[Prepared], encoder: Encoder, index: Index) -> tuple[list[Prepared], int]:
    """The documents with vectors, and how many passages were encoded for that; what is known is not encoded again."""
    known = {}
    for one in batch:
        vectors = index.vectors_of(one.content)
        known[one.content] = vectors if vectors is not None and len(vectors) == len(one.entries) else None
    new = {one.content: one for one in batch if known[one.content] is None}
    texts = [wording(one.document.title, entry) for one in new.values() for entry in one.entries]
    made = iter(encoder.passages(texts))
    for one in new.values():
        known[one.content] = [next(made) for _ in one.entries]
    return [replace(one, vectors=known[one.content]) for one in batch], len(texts)


def discoursed(batch: Sequence[Prepared], discourse: Discourse, index: Index) -> tuple[list[Prepared], int]:
    """The documents with vectors of their sentences, and how many were made for that, likewise."""
    known: dict[bytes, Sequence[Sentences]] = {}
    count = 0
    for one in batch:
        if one.content in known:
            continue
        kept = index.sentences_of(one.content)
        if kept is None or len(kept) != len(one.entries):
            kept = sentences_by_passage(one.document, [entry.passage.span for entry in one.entries], discourse)
            count += sum(len(some.spans) for some in kept)
        known[one.content] = kept
    return [replace(one, sentences=known[one.content]) for one in batch], count


def sentences_by_passage(document: Document, passages: Sequence[Span], discourse: Discourse) -> list[Sentences]:
    """The sentences of each passage of a document, of which the model reads all."""
    spans, vectors = discourse.sentences(document)
    return allotted(spans, vectors, passages)

"""Prepares documents to be kept: cuts, annotates and encodes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from capr.annotate.aspects import aspect_of
from capr.annotate.mentions import Annotator
from capr.documents import Document
from capr.index import Encoder, Entry, Index, Prepared
from capr.index.digest import content
from capr.segment import passages, under


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
    """A passage as an encoder reads it: under its title and its heading, if it does not begin with that."""
    heading = "" if entry.passage.heading_span else entry.passage.heading or ""
    return under(entry.text, title, heading)


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

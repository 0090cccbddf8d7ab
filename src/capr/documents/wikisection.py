"""WikiSection (Arnold et al. 2019) and the other data sets in TeXoo's JSON: documents with annotated sections."""

from __future__ import annotations

from typing import Any

from capr.documents.document import Annotation, Document, Span
from capr.documents.format import Format, Records
from capr.documents.json_stream import items
from capr.documents.problem import Problem
from capr.documents.source import Source


def read(source: Source) -> Records:
    """One document per article, from a list of them or from the `documents` of a data set."""
    prefix = "item" if source.head.lstrip()[:1] == "[" else "documents.item"
    for item in items(source, prefix):
        if isinstance(item, Problem):
            yield item
            continue
        number, record = item
        yield from _document(record, number, source)


def _document(record: Any, number: int, source: Source) -> Records:  # noqa: ANN401 (whatever the JSON holds)
    if not isinstance(record, dict) or not isinstance(record.get("text"), str):
        yield Problem(
            "the record has no text", "take the file as it is published, texts included", record=number
        )
        return
    text = record["text"]
    identifier = str(record.get("id") or source.document_id(number))
    sections = []
    if record.get("annotations") and not text:
        fix = "put the texts back in: this release carries only the annotations"
        yield Problem("the text is blank but has annotated sections", fix, record=identifier)
        return
    for annotation in record.get("annotations") or []:
        try:
            span = Span(int(annotation["begin"]), int(annotation["begin"]) + int(annotation["length"]))
        except (KeyError, TypeError, ValueError) as error:
            fix = "give each annotation a begin and a length"
            yield Problem(
                f"a section has no usable offsets ({type(error).__name__}: {error})", fix, record=identifier
            )
            continue
        if not 0 <= span.begin <= span.end <= len(text):
            fact = f"the section [{span.begin}, {span.end}) is outside the text of {len(text)} characters"
            yield Problem(fact, "take the text and its annotations from the same release", record=identifier)
            continue
        names = (("sectionHeading", "heading"), ("sectionLabel", "label"), ("aspect", "aspect"), ("entity", "entity"),
                 ("entityId", "entity_id"), ("id", "id"))  # fmt: skip
        value = {ours: annotation[theirs] for theirs, ours in names if annotation.get(theirs)}
        sections.append(Annotation("section", span, value))
    metadata = {
        "type": record.get("type"),
        "language": record.get("language"),
        "abstract": record.get("abstract"),
    }
    metadata = {key: value for key, value in metadata.items() if value}
    yield Document(identifier, text, str(record.get("title") or ""), metadata, tuple(sections))


def recognises(name: str, head: str) -> bool:
    start = head.lstrip()[:1]
    return start in "[{" and (
        '"sectionHeading"' in head or '"sectionLabel"' in head or '"EntityAspectAnnotation"' in head
    )


FORMAT = Format("wikisection", "WikiSection and TeXoo JSON: articles with sections", recognises, read)

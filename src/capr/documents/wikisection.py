"""The reader of TeXoo's JSON: WikiSection (Arnold et al. 2019) and other documents with annotated sections."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from capr.documents.document import Annotation, Document, Span
from capr.documents.format import Format, Records
from capr.documents.json_stream import records, values_at
from capr.documents.problem import Problem
from capr.documents.source import Source

SECTION_KEY = re.compile(r'"section(?:Heading|Label)"\s*:|:\s*"EntityAspectAnnotation"')
NAMES = {  # TeXoo's name of a field: capr's
    "sectionHeading": "heading",
    "sectionLabel": "label",
    "aspect": "aspect",
    "entity": "entity",
    "entityId": "entity_id",
    "id": "id",
}


def read(source: Source) -> Records:
    """Yield one document per article, from a list, the `documents` of a data set, JSON Lines or a single object."""
    for record in records(source, values_at("documents"), fix="write one complete article per line"):
        if isinstance(record, Problem):
            yield record
        else:
            yield from _document(record.value, record.number, source)


def _document(record: Any, number: int, source: Source) -> Records:
    if not isinstance(record, dict) or not isinstance(record.get("text"), str):
        yield Problem("the record has no text", "use the published file, which includes the texts", record=number)
        return
    text = record["text"]
    identifier = str(record["id"]) if record.get("id") not in (None, "") else source.document_id(number)
    annotations = record.get("annotations") or []
    if not isinstance(annotations, list):
        fix = "write the annotations as a list"
        yield Problem(f"the annotations are {type(annotations).__name__}, not a list", fix, record=identifier)
        annotations = []
    if annotations and not text:
        fix = "add the texts: this release has only the annotations"
        yield Problem("the text is blank but has annotated sections", fix, record=identifier)
        return
    sections = []
    for annotation in annotations:
        section = _section(annotation, text)
        if isinstance(section, Problem):
            yield replace(section, record=identifier)
        else:
            sections.append(section)
    mapped = ("id", "text", "title", "annotations", "class", "begin", "length")
    metadata = {key: value for key, value in record.items() if key not in mapped and value not in (None, "")}
    yield Document(identifier, text, str(record.get("title") or ""), metadata, tuple(sections))


def _section(annotation: Any, text: str) -> Annotation | Problem:
    try:
        span = Span(int(annotation["begin"]), int(annotation["begin"]) + int(annotation["length"]))
    except (KeyError, TypeError, ValueError) as error:
        fix = "give each annotation a begin offset and a length"
        return Problem(f"a section has no usable offsets ({type(error).__name__}: {error})", fix)
    if not 0 <= span.begin <= span.end <= len(text):
        fact = f"the section [{span.begin}, {span.end}) is outside the text of {len(text)} characters"
        return Problem(fact, "use the text and the annotations of one release")
    value = {name: annotation[texoo_name] for texoo_name, name in NAMES.items() if annotation.get(texoo_name)}
    return Annotation("section", span, value)


def recognises(name: str, head: str) -> bool:
    return head.lstrip()[:1] in ("[", "{") and SECTION_KEY.search(head) is not None


FORMAT = Format("wikisection", "WikiSection and TeXoo JSON: articles with sections", recognises, read)

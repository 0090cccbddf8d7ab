"""Records with named fields, from JSON Lines or tables, turned into documents by a column mapping."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capr.documents.dates import iso_date
from capr.documents.document import Annotation, Document, Span
from capr.documents.outline import joined
from capr.documents.problem import Problem
from capr.documents.source import Source

JSON_TYPES = {
    type(None): "null",
    list: "a list",
    dict: "an object",
    bool: "a boolean",
    int: "a number",
    float: "a number",
}
BETWEEN_PIECES = "\n\n"
# Which field holds what when the user does not say; the first that a record has counts. Compared in lower case.
USUAL_NAMES = {
    "id": (
        "id",
        "note_id",
        "document_id",
        "doc_id",
        "report_id",
        "row_id",
        "sample_id",
        "encounter_id",
        "uid",
        "pmid",
    ),
    "text": ("text", "note_text", "note", "report_text", "report", "body", "content", "transcription"),
    "title": ("title", "name"),
    "patient": ("patient", "patient_id", "subject_id", "mrn", "person_id"),
    "date": ("date", "note_date", "charttime", "chartdate", "created"),
    "type": ("type", "note_type", "category"),
    "source": ("source",),
}


FieldNames = Mapping[str, tuple[str, ...]]


def field_names(names: list[str], columns: Mapping[str, str]) -> FieldNames:
    """For each of capr's fields, the name that it has in these records; several names for a text of several."""
    lower = {_plain(name): name for name in reversed(names)}
    found: dict[str, tuple[str, ...]] = {}
    for field, usual in USUAL_NAMES.items():
        if field in columns:
            several = field == "text" and columns[field] not in names
            wanted = columns[field].split("+") if several else [columns[field]]
            there = [name if name in names else lower.get(_plain(name), "") for name in wanted]
            if all(there):
                found[field] = tuple(there)
        else:
            match = next((lower[name] for name in usual if name in lower), None)
            if match is not None:
                found[field] = (match,)
    return found


def _plain(name: str) -> str:
    """`Note Text` is `note_text`."""
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def missing_field(field: str, names: list[str], columns: Mapping[str, str]) -> Problem:
    """What to say when a record has no such field."""
    shown = ", ".join(names[:20]) or "none"
    wanted = f" {columns[field]!r}" if field in columns else ""
    return Problem(f"no field{wanted} for the {field}; the fields are: {shown}", f"name it with --column {field}=NAME")


def document_from(record: Mapping[str, Any], fields: FieldNames, source: Source, number: int) -> Document | Problem:
    """A document of a record, or what is wrong with the record.

    Fields that are not mapped go into the metadata under their own names. A text mapped to several fields
    (`findings+impression`) is made of these as its sections. A record without text but with `sections` (objects with
    `heading` and `text`, perhaps an `abstract` before them) becomes an article of those sections.
    """
    for field in source.columns:
        if field not in fields:
            return missing_field(field, list(record), source.columns)
    content = _content(record, fields, source)
    if isinstance(content, Problem):
        return content
    text, annotations, used = content
    if isinstance(record.get("annotations"), list):
        try:
            annotations = tuple(annotation_from(value, len(text)) for value in record["annotations"])
            used.add("annotations")
        except (KeyError, TypeError, ValueError) as error:
            fix = "each needs kind, begin and end, inside the text"
            return Problem(f"an annotation is not usable ({type(error).__name__}: {error})", fix)

    values = {field: record[names[0]] for field, names in fields.items()}
    used.update(name for names in fields.values() for name in names)
    metadata: dict[str, Any] = {}
    for field in ("patient", "date", "type", "source"):
        if values.get(field) not in (None, ""):
            metadata[field] = iso_date(str(values[field])) if field == "date" else str(values[field])
    inner = record.get("metadata")
    if isinstance(inner, Mapping):
        metadata |= inner
        used.add("metadata")
    metadata |= {k: v for k, v in record.items() if k not in used and v not in (None, "") and k not in metadata}
    identifier, title = values.get("id"), values.get("title")
    return Document(
        id=source.document_id(number) if identifier in (None, "") else str(identifier),
        text=text,
        title="" if title is None else str(title),
        metadata=metadata,
        annotations=annotations,
    )


def _content(
    record: Mapping[str, Any], fields: FieldNames, source: Source
) -> tuple[str, tuple[Annotation, ...], set[str]] | Problem:
    """The text of a record, the sections that it is made of, and the fields that hold them."""
    if "text" in fields:
        pieces = {name: record[name] for name in fields["text"] if record[name] is not None or len(fields["text"]) == 1}
        for name, value in pieces.items():
            if not isinstance(value, str):
                what = "text" if len(fields["text"]) == 1 else f"field {name!r}"
                fix = "write the text as one string, or name another field with --column text=NAME"
                return Problem(f"the {what} is {json_type(value)}, not a string", fix)
        if len(fields["text"]) == 1:
            return next(iter(pieces.values())), (), set()
        text, sections = joined(((v, {"heading": k}) for k, v in pieces.items() if v.strip()), BETWEEN_PIECES)
        return text, sections, set()
    if _is_article(record):
        abstract = record.get("abstract")
        if abstract is not None and not isinstance(abstract, str):
            fix = "write it as one string, or as one of the sections"
            return Problem(f"the abstract is {json_type(abstract)}, not a string", fix)
        first = [{"heading": "Abstract", "text": abstract}] if abstract else []
        parts = [(part["text"], _without_text(part)) for part in (*first, *record["sections"])]
        text, sections = joined(parts, BETWEEN_PIECES)
        return text, sections, {"sections", "abstract"}
    return missing_field("text", list(record), source.columns)


def annotation_from(value: Mapping[str, Any], length: int) -> Annotation:
    """An annotation as `Document.as_json` writes it.

    Raises:
        KeyError, TypeError, ValueError: it is not of this form, or outside a text of that length.
    """
    span = Span(value["begin"], value["end"])
    if type(span.begin) is not int or type(span.end) is not int:
        raise TypeError(f"[{span.begin}, {span.end}) are not whole numbers")
    if not isinstance(value.get("heading", ""), str) or type(value.get("heading_end", 0)) is not int:
        raise TypeError("its heading is not a string, or its heading_end not a whole number")
    if not 0 <= span.begin <= span.end <= length:
        raise ValueError(f"[{span.begin}, {span.end}) is outside the text of {length} characters")
    return Annotation(str(value["kind"]), span, {k: v for k, v in value.items() if k not in ("kind", "begin", "end")})


def json_type(value: object) -> str:
    """What JSON calls a value's type."""
    return JSON_TYPES.get(type(value), type(value).__name__)


def _is_article(record: Mapping[str, Any]) -> bool:
    sections = record.get("sections")
    return (
        isinstance(sections, list)
        and all(isinstance(section, Mapping) and isinstance(section.get("text"), str) for section in sections)
        and (bool(sections) or isinstance(record.get("abstract"), str))
    )


def _without_text(part: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key != "text" and value is not None}

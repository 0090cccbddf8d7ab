"""Documents from records with named fields (JSON Lines, tables), by a mapping of columns to capr's fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capr.documents.dates import iso_date
from capr.documents.document import Annotation, Document, Span
from capr.documents.outline import join_parts
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
SEPARATOR = "\n\n"
# The usual names of each field in lower case, for records without a mapping. The first name in the record wins.
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
    """Match capr's fields to the names of the fields in a record.

    Args:
        names: the names in the record.
        columns: the user's mapping of capr's fields to such names. A text may have several: `findings+impression`.

    Returns:
        The names for each field of capr that the record has.
    """
    name_by_key = {_key(name): name for name in reversed(names)}
    mapping: dict[str, tuple[str, ...]] = {}
    for field, usual_names in USUAL_NAMES.items():
        if field in columns:
            may_be_several = field == "text" and columns[field] not in names
            mapped_names = columns[field].split("+") if may_be_several else [columns[field]]
            present_names = [name if name in names else name_by_key.get(_key(name), "") for name in mapped_names]
            if all(present_names):
                mapping[field] = tuple(present_names)
        else:
            usual_name = next((name_by_key[name] for name in usual_names if name in name_by_key), None)
            if usual_name is not None:
                mapping[field] = (usual_name,)
    return mapping


def _key(name: str) -> str:
    """Return the form in which names compare: `note_text` for `Note Text`."""
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def missing_field(field: str, names: list[str], columns: Mapping[str, str]) -> Problem:
    """Return the problem of a record that lacks one of capr's fields."""
    name_list = ", ".join(names[:20]) or "none"
    name = f" {columns[field]!r}" if field in columns else ""
    fact = f"no field{name} for the {field}; the fields are: {name_list}"
    return Problem(fact, f"name it with --column {field}=NAME")


def document_from(record: Mapping[str, Any], fields: FieldNames, source: Source, number: int) -> Document | Problem:
    """Make a document from a record.

    Fields without a mapping go into the metadata under their own names. A text that is mapped to several fields
    (`findings+impression`) has these fields as its sections. A record without a text but with `sections` (objects with
    `heading` and `text`, perhaps with an `abstract` before them) becomes an article with those sections.

    Args:
        record: the fields of the record.
        fields: the names of capr's fields in the record, from `field_names`.
        source: the file of the record.
        number: the number of the record in the file, for a record without an id.

    Returns:
        The document, or the problem that makes the record unusable.
    """
    for field in source.columns:
        if field not in fields:
            return missing_field(field, list(record), source.columns)
    content = _content(record, fields, source)
    if isinstance(content, Problem):
        return content
    text, annotations, mapped = content
    if isinstance(record.get("annotations"), list):
        try:
            annotations = tuple(annotation_from(value, len(text)) for value in record["annotations"])
            mapped.add("annotations")
        except (KeyError, TypeError, ValueError) as error:
            fix = "give each annotation a kind, and begin and end offsets inside the text"
            return Problem(f"an annotation is not usable ({type(error).__name__}: {error})", fix)

    values = {field: record[names[0]] for field, names in fields.items()}
    mapped.update(name for names in fields.values() for name in names)
    metadata: dict[str, Any] = {}
    for field in ("patient", "date", "type", "source"):
        if values.get(field) not in (None, ""):
            metadata[field] = iso_date(str(values[field])) if field == "date" else str(values[field])
    own_metadata = record.get("metadata")
    if isinstance(own_metadata, Mapping):
        metadata |= own_metadata
        mapped.add("metadata")
    metadata |= {k: v for k, v in record.items() if k not in mapped and v not in (None, "") and k not in metadata}
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
    """Return the text of a record, its sections, and the names of the fields that hold the sections."""
    if "text" in fields:
        values = {name: record[name] for name in fields["text"] if record[name] is not None or len(fields["text"]) == 1}
        for name, value in values.items():
            if not isinstance(value, str):
                subject = "text" if len(fields["text"]) == 1 else f"field {name!r}"
                fix = "write the text as one string, or name another field with --column text=NAME"
                return Problem(f"the {subject} is {json_type(value)}, not a string", fix)
        if len(fields["text"]) == 1:
            return next(iter(values.values())), (), set()
        text, sections = join_parts(((v, {"heading": k}) for k, v in values.items() if v.strip()), SEPARATOR)
        return text, sections, set()
    if _is_article(record):
        abstract = record.get("abstract")
        if abstract is not None and not isinstance(abstract, str):
            fix = "write it as one string, or as one of the sections"
            return Problem(f"the abstract is {json_type(abstract)}, not a string", fix)
        abstract_sections = [{"heading": "Abstract", "text": abstract}] if abstract else []
        parts = [(part["text"], _without_text(part)) for part in (*abstract_sections, *record["sections"])]
        text, sections = join_parts(parts, SEPARATOR)
        return text, sections, {"sections", "abstract"}
    return missing_field("text", list(record), source.columns)


def annotation_from(value: Mapping[str, Any], length: int) -> Annotation:
    """Read an annotation that `Document.as_json` wrote.

    Args:
        value: the annotation as JSON.
        length: the length of the document's text.

    Raises:
        KeyError, TypeError, ValueError: the value does not have this form, or its span is outside the text.
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
    """Return the name of a value's type in JSON, with its article."""
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

"""Records with named fields, from JSON Lines or tables, turned into documents by a column mapping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from capr.documents.dates import iso_date
from capr.documents.document import Annotation, Document, Span
from capr.documents.problem import Problem
from capr.documents.source import Source

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


def field_names(names: list[str], columns: Mapping[str, str]) -> dict[str, str]:
    """For each of capr's fields, the name that it has in these records."""
    lower = {name.lower().strip(): name for name in reversed(names)}
    found = {}
    for field, usual in USUAL_NAMES.items():
        if field in columns:
            wanted = columns[field].split("+") if field == "text" else [columns[field]]
            there = [name if name in names else lower.get(name.lower(), "") for name in wanted]
            if all(there):
                found[field] = "+".join(there)
        else:
            match = next((lower[name] for name in usual if name in lower), None)
            if match is not None:
                found[field] = match
    return found


def missing_field(field: str, names: list[str], columns: Mapping[str, str]) -> Problem:
    """What to say when a record has no such field."""
    shown = ", ".join(names[:20]) or "none"
    wanted = f" {columns[field]!r}" if field in columns else ""
    return Problem(
        f"no field{wanted} for the {field}; the fields are: {shown}", f"name it with --column {field}=NAME"
    )


def document_from(
    record: Mapping[str, Any], fields: Mapping[str, str], source: Source, number: int
) -> Document | Problem:
    """A document of a record, or what is wrong with the record.

    Fields that are not mapped go into the metadata under their own names. A text mapped to several fields
    (`findings+impression`) is made of these as its sections. A record without text but with `sections`
    (objects with `heading` and `text`, perhaps an `abstract` before them) becomes an article of those sections.
    """
    annotations: tuple[Annotation, ...] = ()
    used = set(fields.values())
    if "+" in fields.get("text", ""):
        used |= set(several := fields["text"].split("+"))
        pieces = [
            {"heading": name, "text": record[name]} for name in several if isinstance(record[name], str)
        ]
        text, annotations = _joined([piece for piece in pieces if piece["text"].strip()])
    elif "text" in fields:
        text = record[fields["text"]]
        if not isinstance(text, str):
            fix = "write the text as one string, or name another field with --column text=NAME"
            return Problem(f"the text is {type(text).__name__}, not a string", fix)
    elif _is_article(record):
        abstract = [{"heading": "Abstract", "text": record["abstract"]}] if record.get("abstract") else []
        text, annotations = _joined([*abstract, *record["sections"]])
        used |= {"sections", "abstract"}
    else:
        return missing_field("text", list(record), source.columns)
    if isinstance(record.get("annotations"), list):
        try:
            annotations = tuple(_annotation(value, len(text)) for value in record["annotations"])
            used.add("annotations")
        except (KeyError, TypeError, ValueError) as error:
            fix = "each needs kind, begin and end, inside the text"
            return Problem(f"an annotation is not usable ({type(error).__name__}: {error})", fix)

    metadata: dict[str, Any] = {}
    for field in ("patient", "date", "type", "source"):
        if field in fields and (value := record[fields[field]]) not in (None, ""):
            metadata[field] = iso_date(str(value)) if field == "date" else str(value)
    inner = record.get("metadata")
    if isinstance(inner, Mapping):
        metadata |= inner
        used.add("metadata")
    metadata |= {
        k: v for k, v in record.items() if k not in used and v not in (None, "") and k not in metadata
    }
    identifier = record[fields["id"]] if "id" in fields else None
    title = record[fields["title"]] if "title" in fields else None
    return Document(
        id=source.document_id(number) if identifier in (None, "") else str(identifier),
        text=text,
        title="" if title is None else str(title),
        metadata=metadata,
        annotations=annotations,
    )


def _annotation(value: Mapping[str, Any], length: int) -> Annotation:
    span = Span(int(value["begin"]), int(value["end"]))
    if not 0 <= span.begin <= span.end <= length:
        raise ValueError(f"[{span.begin}, {span.end}) is outside the text of {length} characters")
    return Annotation(
        str(value["kind"]), span, {k: v for k, v in value.items() if k not in ("kind", "begin", "end")}
    )


def _is_article(record: Mapping[str, Any]) -> bool:
    sections = record.get("sections")
    return (
        isinstance(sections, list)
        and all(isinstance(section, Mapping) and isinstance(section.get("text"), str) for section in sections)
        and (bool(sections) or isinstance(record.get("abstract"), str))
    )


def _joined(pieces: Sequence[Mapping[str, Any]]) -> tuple[str, tuple[Annotation, ...]]:
    """Pieces with a blank line between them; their headings are annotations and not part of the text."""
    annotations, begin = [], 0
    for piece in pieces:
        end = begin + len(piece["text"])
        value = {key: item for key, item in piece.items() if key != "text" and item is not None}
        annotations.append(Annotation("section", Span(begin, end), value))
        begin = end + len(BETWEEN_PIECES)
    return BETWEEN_PIECES.join(piece["text"] for piece in pieces), tuple(annotations)

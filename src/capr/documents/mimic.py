"""The reader of MIMIC-III `NOTEEVENTS.csv` and MIMIC-IV-Note `discharge.csv`, `radiology.csv`, plain or gzipped."""

from __future__ import annotations

from capr.documents import delimited
from capr.documents.dates import iso_date
from capr.documents.document import Document
from capr.documents.format import Format, Records
from capr.documents.problem import Problem
from capr.documents.source import Source

MIMIC_IV_TYPES = {"DS": "Discharge summary", "RR": "Radiology report", "AD": "Addendum", "AR": "Addendum"}


def read(source: Source) -> Records:
    """Yield one document per note. A note that MIMIC-III marks as an error has `iserror` in its metadata."""
    if source.columns:  # the user's mapping takes precedence over MIMIC's names
        yield from delimited.read(source)
        return
    for row in delimited.rows(source):
        if isinstance(row, Problem):
            yield row
            continue
        note = {name.lower().strip(' "'): value for name, value in row.values.items()}
        if len(note) < len(row.values):
            yield Problem("the names of two columns differ only in case", "give each column its own name", line=1)
            return
        identifier = note.get("note_id") or note.get("row_id")
        missing = [name for name, value in (("note id", identifier), ("text", note.get("text"))) if not value]
        if missing:
            fix = "use the file that PhysioNet publishes; its columns are text and row_id (III) or note_id (IV)"
            yield Problem(f"the row has no {' and no '.join(missing)}", fix, line=row.line, record=row.number)
            continue
        yield _document(str(identifier), note)


def _document(identifier: str, note: dict[str, str]) -> Document:
    metadata = {"patient": note.get("subject_id", "")}
    if "note_id" in note:
        kind = note.get("note_type", "")
        metadata |= {"type": MIMIC_IV_TYPES.get(kind, kind), "source": "MIMIC-IV-Note"}
        title = metadata["type"]
    else:
        metadata |= {"type": note.get("category", "").strip(), "source": "MIMIC-III"}
        title = note.get("description", "")
    metadata["date"] = iso_date(note.get("charttime") or note.get("chartdate") or "")
    mapped = ("subject_id", "note_id", "row_id", "category", "note_type", "text", "charttime", "chartdate")
    metadata = {name: value for name, value in note.items() if name not in mapped} | metadata
    return Document(identifier, note["text"], title, {name: value for name, value in metadata.items() if value})


def recognises(name: str, head: str) -> bool:
    header = head.partition("\n")[0].lower().replace('"', "")
    names = {name.strip() for name in header.split(",")}
    return {"subject_id", "text"} <= names and bool({"row_id", "note_id"} & names)


FORMAT = Format("mimic", "MIMIC-III NOTEEVENTS.csv, MIMIC-IV-Note discharge.csv and radiology.csv", recognises, read)

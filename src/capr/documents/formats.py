"""The formats that capr reads. The first that recognises a file counts, so special ones stand first."""

from __future__ import annotations

from capr.documents import (
    bioasq,
    conll,
    delimited,
    fhir,
    hl7,
    html,
    jsonl,
    markdown,
    medquad,
    mimic,
    pdf,
    squad,
    text,
    wikisection,
)
from capr.documents.format import Format

FORMATS: tuple[Format, ...] = (
    pdf.FORMAT,
    medquad.FORMAT,
    hl7.FORMAT,
    fhir.FORMAT,
    wikisection.FORMAT,
    squad.FORMAT,
    bioasq.FORMAT,
    mimic.FORMAT,
    conll.FORMAT,
    delimited.FORMAT,
    html.FORMAT,
    markdown.FORMAT,
    jsonl.FORMAT,
    text.FORMAT,
)
BY_NAME = {format.name: format for format in FORMATS}


def recognise(name: str, head: str) -> Format | None:
    """The format of a file, from its name and its first characters."""
    name = name.lower()
    return next((format for format in FORMATS if format.recognises(name, head)), None)

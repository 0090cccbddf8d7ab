"""The registry of formats. The first format that recognises a file reads it: special formats precede general ones."""

from __future__ import annotations

from importlib import import_module

from capr.documents.format import Format

# Modules of this folder. Each defines a `FORMAT`.
MODULES = (
    "pdf",
    "medquad",
    "hl7",
    "fhir",
    "wikisection",
    "squad",
    "bioasq",
    "mimic",
    "conll",
    "delimited",
    "html",
    "markdown",
    "jsonl",
    "text",
)
FORMATS: tuple[Format, ...] = tuple(import_module(f"capr.documents.{name}").FORMAT for name in MODULES)
BY_NAME = {format.name: format for format in FORMATS}


def recognise(name: str, head: str) -> Format | None:
    """Return the format of a file from its name and its first characters, or None if no format recognises it."""
    name = name.lower()
    return next((format for format in FORMATS if format.recognises(name, head)), None)

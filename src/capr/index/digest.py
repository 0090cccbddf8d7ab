"""Documents as plain JSON, and their digests, by which equal ones are recognised."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from capr.documents import Document


def as_text(value: Any) -> str:
    """JSON of whatever a document may hold: mappings of any kind are objects, what JSON does not know is text."""
    return json.dumps(value, ensure_ascii=False, default=lambda v: dict(v) if isinstance(v, Mapping) else str(v))


def plain(value: Any) -> Any:
    """A value as it comes back from where it is kept."""
    return json.loads(as_text(value))


def digest(document: Document) -> bytes:
    """Of everything that a document is, but not of where it lay: the same note in another folder is the same note."""
    record = document.as_json()
    record["metadata"] = {name: value for name, value in document.metadata.items() if name not in ("file", "source")}
    return _digest(record)


def content(document: Document) -> bytes:
    """Of what its vectors depend on: title, text and the sections that the source marked."""
    sections = [[*a.span, dict(a.value)] for a in document.annotations if a.kind == "section"]
    return _digest([document.title, document.text, sections])


def _digest(value: Any) -> bytes:
    return hashlib.sha256(json.dumps(plain(value), sort_keys=True).encode()).digest()

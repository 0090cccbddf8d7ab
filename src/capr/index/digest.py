"""Digests, by which equal documents are recognised."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from capr.documents import Document


def digest(document: Document) -> bytes:
    """Of everything that a document is."""
    return _digest(document.as_json())


def content(document: Document) -> bytes:
    """Of what its vectors depend on: title, text and the sections that the source marked."""
    sections = [[*a.span, dict(a.value)] for a in document.annotations if a.kind == "section"]
    return _digest([document.title, document.text, sections])


def _digest(value: Any) -> bytes:
    plain = json.loads(json.dumps(value, default=str))  # as it comes back from where it is kept
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).digest()

"""Documents as JSON, and digests that identify equal documents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from capr.documents import Document


def as_text(value: Any) -> str:
    """Return the JSON of a value from a document.

    Any mapping becomes an object, and a value of an unknown type becomes a string.
    """
    return json.dumps(value, ensure_ascii=False, default=lambda v: dict(v) if isinstance(v, Mapping) else str(v))


def plain(value: Any) -> Any:
    """Return a value as it is after writing it to JSON and reading it back."""
    return json.loads(as_text(value))


def digest(document: Document, cutting: Mapping[str, Any] | None = None) -> bytes:
    """Return the digest of a document.

    The digest ignores `file` and `source` in the metadata, so that a note has the same digest in any folder.

    Args:
        document: any document.
        cutting: the settings that differ from the defaults (`Cutting.as_json`). They change the digest.
    """
    record = document.as_json()
    record["metadata"] = {name: value for name, value in document.metadata.items() if name not in ("file", "source")}
    return _digest(_with_cutting(record, cutting))


def content(document: Document, cutting: Mapping[str, Any] | None = None) -> bytes:
    """Return the digest of the content that vectors depend on: title, text, annotated sections and cutting.

    Args:
        document: any document.
        cutting: the settings that differ from the defaults (`Cutting.as_json`). They change the digest.
    """
    sections = [[*a.span, dict(a.value)] for a in document.annotations if a.kind == "section"]
    return _digest(_with_cutting([document.title, document.text, sections], cutting))


def digest_records(records: Iterable[Any]) -> str:
    """Return the digest of records that JSON can express; tuples count as lists.

    >>> digest_records([(1, "a"), "b"]) == digest_records([[1, "a"], "b"]) != digest_records(["b", [1, "a"]])
    True
    """
    total = hashlib.sha256()
    for record in records:
        total.update(as_text(record).encode() + b"\n")
    return total.hexdigest()


def _with_cutting(value: Any, cutting: Mapping[str, Any] | None) -> Any:
    """Add the cutting to a value. The default cutting changes nothing, so that digests of older versions stay valid."""
    return [value, {"cutting": dict(cutting)}] if cutting else value


def _digest(value: Any) -> bytes:
    return hashlib.sha256(json.dumps(plain(value), sort_keys=True).encode()).digest()

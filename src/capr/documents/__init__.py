"""Documents in: `read` files of any format that clinicians and researchers have, without changing a character."""

from capr.documents.document import Annotation, Document, Span
from capr.documents.problem import (
    BusyError,
    CaprError,
    Notice,
    NotThereError,
    Problem,
    ReadError,
    UnavailableError,
)
from capr.documents.reading import Reading, read
from capr.documents.source import Unpacked

__all__ = [
    "Annotation",
    "BusyError",
    "CaprError",
    "Document",
    "NotThereError",
    "Notice",
    "Problem",
    "ReadError",
    "Reading",
    "Span",
    "UnavailableError",
    "Unpacked",
    "read",
]

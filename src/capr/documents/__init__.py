"""Documents and their readers: `read` reads files of many formats and keeps every character of their text."""

from capr.deprecation import renamed_attributes
from capr.documents.document import Annotation, Document, Span
from capr.documents.problem import (
    BusyError,
    CaprError,
    NotFoundError,
    Notice,
    Problem,
    ReadError,
    UnavailableError,
)
from capr.documents.reading import DocumentStream, read
from capr.documents.source import Unpacked

__all__ = [
    "Annotation",
    "BusyError",
    "CaprError",
    "Document",
    "DocumentStream",
    "NotFoundError",
    "Notice",
    "Problem",
    "ReadError",
    "Span",
    "UnavailableError",
    "Unpacked",
    "read",
]

__getattr__ = renamed_attributes(__name__, {"NotThereError": "NotFoundError", "Reading": "DocumentStream"})

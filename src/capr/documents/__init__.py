"""Documents in: `read` files of any format that clinicians and researchers have, without changing a character."""

from capr.documents.document import Annotation, Document, Span
from capr.documents.problem import CaprError, Notice, Problem, ReadError
from capr.documents.reading import Reading, read

__all__ = ["Annotation", "CaprError", "Document", "Notice", "Problem", "ReadError", "Reading", "Span", "read"]

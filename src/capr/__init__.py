"""capr finds the passage that answers a clinical question, and shows exactly where it stands."""

from capr import samples
from capr.documents import CaprError, Document, ReadError, Span, read
from capr.segment import Passage, Section, passages, sections, sentences, uniform

__version__ = "0.1.0"
__all__ = [
    "CaprError",
    "Document",
    "Passage",
    "ReadError",
    "Section",
    "Span",
    "__version__",
    "passages",
    "read",
    "samples",
    "sections",
    "sentences",
    "uniform",
]

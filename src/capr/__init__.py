"""capr finds the passage that answers a clinical question, and shows exactly where it stands."""

from capr import samples
from capr.documents import CaprError, Document, ReadError, Span, read

__version__ = "0.1.0"
__all__ = ["CaprError", "Document", "ReadError", "Span", "__version__", "read", "samples"]

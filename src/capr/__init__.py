"""capr finds the passage that answers a clinical question, and shows exactly where it stands."""

from typing import TYPE_CHECKING

from capr import samples
from capr.annotate import Mention, Query, Vocabulary
from capr.documents import CaprError, Document, ReadError, Span, read
from capr.search import Answer, Answers, Hit, Library, Results, ask
from capr.segment import Passage, Section, passages, sections, sentences, uniform

if TYPE_CHECKING:
    from capr.annotate import annotate
else:
    from capr import annotate  # the folder can be called like the function in it

__version__ = "0.1.0"
__all__ = [
    "Answer",
    "Answers",
    "CaprError",
    "Document",
    "Hit",
    "Library",
    "Mention",
    "Passage",
    "Query",
    "ReadError",
    "Results",
    "Section",
    "Span",
    "Vocabulary",
    "__version__",
    "annotate",
    "ask",
    "passages",
    "read",
    "samples",
    "sections",
    "sentences",
    "uniform",
]

"""capr finds the passage that answers a clinical question and gives its exact position in the document.

`import capr` is quick: it imports the names below when a program first uses them. A program that only trains or only
reads documents therefore needs no other packages installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from capr.version import __version__

if TYPE_CHECKING:
    from capr import samples
    from capr.annotate import Mention, Query, Vocabulary, annotate
    from capr.documents import CaprError, Document, ReadError, Span, read
    from capr.search import Answer, Answers, Hit, Library, Results, ask
    from capr.segment import Passage, Section, passages, sections, sentences, uniform

SOURCES = {
    "capr.annotate": ("Mention", "Query", "Vocabulary"),
    "capr.documents": ("CaprError", "Document", "ReadError", "Span", "read"),
    "capr.search": ("Answer", "Answers", "Hit", "Library", "Results", "ask"),
    "capr.segment": ("Passage", "Section", "passages", "sections", "sentences", "uniform"),
}

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


def __getattr__(name: str) -> Any:
    if name.startswith("_"):  # `__main__` would run the command line
        raise AttributeError(f"module 'capr' has no attribute {name!r}")
    for module, names in SOURCES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(module), name)
            return value
    try:
        return import_module(f"capr.{name}")  # the module `annotate` is callable, too
    except ModuleNotFoundError as error:
        if error.name != f"capr.{name}":
            raise
        raise AttributeError(f"module 'capr' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

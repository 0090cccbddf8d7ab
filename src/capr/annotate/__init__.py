"""What a text speaks of, and how: mentions of entities with their context, and the aspects that its headings name.

`capr.annotate(document)` finds the mentions; the module itself can be called.
"""

from __future__ import annotations

import sys
from types import ModuleType

from capr.annotate.aspects import Aspect, aspect_of
from capr.annotate.completion import Suggestion
from capr.annotate.concept import Concept
from capr.annotate.context import Cue, context
from capr.annotate.mentions import Mention, annotate
from capr.annotate.query import Query
from capr.annotate.vocabulary import Vocabulary
from capr.documents import Document

__all__ = [
    "Aspect",
    "Concept",
    "Cue",
    "Mention",
    "Query",
    "Suggestion",
    "Vocabulary",
    "annotate",
    "aspect_of",
    "context",
]


class _Callable(ModuleType):
    def __call__(
        self, document: Document | str, tagger: bool = True, vocabulary: Vocabulary | None = None
    ) -> list[Mention]:
        return annotate(document, tagger, vocabulary)


sys.modules[__name__].__class__ = _Callable

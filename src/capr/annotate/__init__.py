"""Annotate a text: mentions of entities with their context, and the aspects of its headings.

The module is callable: `capr.annotate(document)` finds the mentions.
"""

from __future__ import annotations

import sys
from types import ModuleType

from capr.annotate.completion import Suggestion
from capr.annotate.concept import Concept
from capr.annotate.context import Cue, context
from capr.annotate.mentions import Mention, annotate
from capr.annotate.query import Query
from capr.annotate.vocabulary import Vocabulary
from capr.documents import Document
from capr.segment.aspects import Aspect, aspect_of

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

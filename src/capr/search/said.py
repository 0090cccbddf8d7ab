"""What is said of a mention or an answer, and by which words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capr.annotate.context import Cue


def said(context: Mapping[str, Cue]) -> dict[str, Any]:
    """The words for every property that is true, and where they stand; nowhere, where a heading says it."""
    return {
        flag: {"text": cue.words, "begin": cue.span and cue.span.begin, "end": cue.span and cue.span.end}
        for flag, cue in context.items()
    }

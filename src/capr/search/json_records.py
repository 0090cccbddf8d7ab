"""Convert spans and mentions to the JSON records that all results share."""

from __future__ import annotations

from typing import Any

from capr.annotate import Mention
from capr.annotate.context import FLAGS, cues_as_json
from capr.documents import Span


def span_as_json(span: Span, text: str) -> dict[str, Any]:
    """Return a span and its text."""
    return {"begin": span.begin, "end": span.end, "text": text}


def mention_as_json(mention: Mention, text: str) -> dict[str, Any]:
    """Return a mention with its text; `cues` has the cue of every property that is true."""
    return {
        **span_as_json(mention.span, text),
        "kind": mention.kind,
        "concept": mention.concept.as_json() if mention.concept else None,
        **{flag: True for flag in FLAGS if flag in mention.context},
        "cues": cues_as_json(mention.context),
    }

"""Stop words: words that say nothing about the content of a passage."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def stopwords() -> frozenset[str]:
    """Return the words of stopwords.txt, in lower case."""
    return frozenset(files("capr.text").joinpath("stopwords.txt").read_text("utf-8").split())

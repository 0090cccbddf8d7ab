"""Stems: the forms in which words compare in the word index and in all code that must agree with it."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

MAX_LENGTH = 60  # characters; the analyzer drops longer words


@cache
def analyzer() -> Any:
    """Return the tantivy analyzer, which turns a text into stems in lower case without accents."""
    import tantivy  # imported here, because training does not need it

    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for step in (
        tantivy.Filter.remove_long(MAX_LENGTH),
        tantivy.Filter.lowercase(),
        tantivy.Filter.ascii_fold(),
        tantivy.Filter.stemmer("english"),
    ):
        builder = builder.filter(step)
    return builder.build()


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """Return the stem of a word; empty if the text contains no word."""
    return "".join(stems(word)[:1])


def stems(text: str) -> list[str]:
    """Return the stems of the words of a text.

    >>> stems("Ménière's diseases, 5 mg")
    ['menier', 's', 'diseas', '5', 'mg']
    """
    result: list[str] = analyzer().analyze(text)
    return result

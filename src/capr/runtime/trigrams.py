"""The word features of TASTY: letter trigrams, the shape of the word, and its position in the sentence.

Reference: Arnold, Gers, Kilias and Löser, Robust Named Entity Recognition in Idiosyncratic Domains, 2016; details are
those of its released code (TeXoo).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capr.runtime.tagger_windows import TaggerWindow

FLAGS = 11
LONGEST = 512  # the maximum number of words of a window
POSITIONS = 2  # features for the first and the last word of a sentence
PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


def trigrams(word: str) -> list[str]:
    """Return the letter trigrams of `#word#`, lower-cased.

    >>> trigrams("Flu")
    ['#fl', 'flu', 'lu#']
    """
    marked = f"#{word.lower()}#"
    return [marked[i : i + 3] for i in range(len(marked) - 2)]


def flags(word: str) -> list[bool]:
    """Return the shape of the word: its case, its digits, and punctuation at its ends."""
    upper, lower = word.isupper(), word.islower()
    digits = [letter.isdigit() for letter in word]
    return [
        word[0].isupper(),
        word[0].islower(),
        upper,
        lower,
        word.isalpha() and not upper and not lower,
        all(digits),
        any(digits),
        digits[0],
        digits[-1],
        word[0] in PUNCTUATION,
        word[-1] in PUNCTUATION,
    ]


def vocabulary(words: Iterable[str], at_least: int = 10) -> list[str]:
    """Return the trigrams that occur at least `at_least` times, sorted."""
    counts = Counter(trigram for word in words for trigram in trigrams(word))
    return sorted(trigram for trigram, count in counts.items() if count >= at_least)


class Trigrams:
    """Words as binary vectors. A window is one sentence, because TASTY uses no wider context."""

    def __init__(self, known: Sequence[str]) -> None:
        self.columns = {trigram: column for column, trigram in enumerate(known)}
        self.size = len(known) + FLAGS + POSITIONS

    def windows(self, cut: Sequence[Sequence[str]]) -> Iterator[TaggerWindow]:
        """Yield a window for each sentence: the columns that are 1 for each word. Split a very long sentence."""
        for words in cut:
            rows = [self._columns(word) for word in words]
            if rows:
                rows[0].append(self.size - 2)
                rows[-1].append(self.size - 1)
            for begin in range(0, len(rows), LONGEST):
                part = rows[begin : begin + LONGEST]
                yield TaggerWindow(part, list(range(len(part))))

    def arrays(self, windows: Sequence[TaggerWindow]) -> dict[str, NDArray[Any]]:
        """Return `words` (windows, words, size) and `lengths` (windows)."""
        shape = len(windows), max(len(window.pieces) for window in windows), self.size
        vectors = np.zeros(shape, np.float32)
        for row, window in enumerate(windows):
            for position, columns in enumerate(window.pieces):
                vectors[row, position, columns] = 1
        return {"words": vectors, "lengths": np.array([len(window.pieces) for window in windows], np.int64)}

    def _columns(self, word: str) -> list[int]:
        shape = [len(self.columns) + i for i, flag in enumerate(flags(word)) if flag]
        return [self.columns[trigram] for trigram in trigrams(word) if trigram in self.columns] + shape

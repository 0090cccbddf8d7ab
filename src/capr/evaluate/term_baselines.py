"""BM25 and TF-IDF, as Lucene computes them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

WORD = re.compile(r"\w+(?:['’.]\w+)*")
K1, B = 1.2, 0.75
Scores = NDArray[np.float64]


def words(text: str) -> list[str]:
    """Return the words of a text without case and accents.

    >>> words("Ménière's disease, beta-2")
    ["meniere's", 'disease', 'beta', '2']
    """
    plain = unicodedata.normalize("NFKD", text.lower())
    return WORD.findall("".join(c for c in plain if not unicodedata.combining(c)))


class Terms:
    """An inverted index in memory.

    Args:
        passages: the texts, by id.
        weighting: the weighting, `bm25` (k1 1.2, b 0.75) or `tfidf` (Lucene's classic similarity).
    """

    def __init__(self, passages: Mapping[str, str], weighting: str = "bm25") -> None:
        self.ids = list(passages)
        self._weigh = {"bm25": self._bm25, "tfidf": self._tfidf}[weighting]
        postings: dict[str, list[tuple[int, int]]] = {}
        lengths = np.zeros(len(self.ids))
        for number, text in enumerate(passages.values()):
            counts = Counter(words(text))
            lengths[number] = counts.total()
            for word, count in counts.items():
                postings.setdefault(word, []).append((number, count))
        self.lengths = np.maximum(lengths, 1)
        self._postings = {word: np.array(pairs, np.int64).T for word, pairs in postings.items()}

    def scores(self, query: str) -> Scores:
        """Return the scores of all passages: (passages,)."""
        total = np.zeros(len(self.ids))
        for word, frequency in Counter(words(query)).items():
            if (posting := self._postings.get(word)) is not None:
                numbers, counts = posting
                total[numbers] += frequency * self._weigh(counts, self.lengths[numbers], len(numbers))
        return total

    def best(self, query: str, k: int) -> list[str]:
        """Return the ids of the k best passages that have a word of the query, best first.

        Passages with the same score keep their order.
        """
        scores = self.scores(query)
        order = np.argsort(-scores, kind="stable")[:k]
        return [self.ids[i] for i in order if scores[i] > 0]

    def _bm25(self, counts: NDArray[np.int64], lengths: Scores, documents: int) -> Scores:
        rarity = np.log(1 + (len(self.ids) - documents + 0.5) / (documents + 0.5))
        weights: Scores = rarity * counts / (counts + K1 * (1 - B + B * lengths / self.lengths.mean()))
        return weights

    def _tfidf(self, counts: NDArray[np.int64], lengths: Scores, documents: int) -> Scores:
        rarity = 1 + np.log((len(self.ids) + 1) / (documents + 1))
        weights: Scores = np.sqrt(counts) * rarity**2 / np.sqrt(lengths)
        return weights

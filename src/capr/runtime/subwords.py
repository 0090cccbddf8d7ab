"""Word vectors with n-grams, so that unknown words have vectors too; needs only numpy.

References: Bojanowski et al., Enriching Word Vectors with Subword Information (fastText), 2017. The weighted mean of a
sentence is that of Arora et al., A Simple but Tough-to-Beat Baseline for Sentence Embeddings (SIF), 2017. A sketch
encodes which words a text has, without their meaning: Achlioptas, Database-friendly random projections, 2003.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from capr.documents import CaprError
from capr.runtime import arrays
from capr.runtime.identity import Vector
from capr.runtime.onnx import Floats
from capr.text.words import WORD

MEANS = ("mean", "weighted", "unit", "sketch")
SKETCH = 128  # dimensions of a sketch
SMOOTHING = 1e-4  # the parameter a of SIF: a word with this share of all words has half the weight of a rare word
REMEMBERED = 200_000  # the maximum number of cached vectors of words outside the vocabulary
UTF8 = 0x80
PACKED = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case.

    >>> words_of("Ehlers-Danlos syndrome, type 4 (1899).")
    ['ehlers', 'danlos', 'syndrome', 'type', '4', '1899']
    """
    return WORD.findall(text.lower())


@lru_cache(REMEMBERED)
def signs(word: str) -> Vector:
    """Return a vector (128,) of length 1 that is specific to the word, from the bits of its hash."""
    digest = hashlib.blake2b(word.encode(), digest_size=SKETCH // 8).digest()
    vector: Vector = (2 * np.unpackbits(np.frombuffer(digest, np.uint8)).astype(np.float32) - 1) / np.sqrt(SKETCH)
    return vector


def grams(word: str, shortest: int, longest: int) -> list[str]:
    """Return the character n-grams of a word with its ends marked.

    >>> grams("gout", 3, 4)
    ['<go', 'gou', 'out', 'ut>', '<gou', 'gout', 'out>']
    """
    marked = f"<{word}>"
    sizes = range(shortest, min(longest, len(marked)) + 1)
    return [marked[begin : begin + size] for size in sizes for begin in range(len(marked) - size + 1)]


def bucket(gram: str, buckets: int) -> int:
    """Return the bucket of an n-gram: FNV-1a of its UTF-8 bytes. Bytes above 127 are sign-extended, as in fastText."""
    value = 2166136261
    for byte in gram.encode():
        value = ((value ^ (byte if byte < UTF8 else byte | 0xFFFFFF00)) * 16777619) & 0xFFFFFFFF
    return value % buckets


class Subwords:
    """Vectors of words and of their n-grams.

    Args:
        words: the vocabulary.
        vectors: (words, dimensions).
        counts: the frequency of each word in the training text, which determines its weight.
        buckets: (buckets, dimensions), the vectors of n-grams; without rows, unknown words have vectors of zeros.
        sizes: the lengths of the shortest and the longest n-gram.
    """

    def __init__(
        self,
        words: Sequence[str],
        vectors: Floats,
        counts: Sequence[int] | NDArray[np.int64],
        buckets: Floats | None = None,
        sizes: tuple[int, int] = (3, 6),
    ) -> None:
        self.words = {word: row for row, word in enumerate(words)}
        self.vectors = np.asarray(vectors, np.float32)
        self.counts = np.asarray(counts, np.int64)
        self.dimensions = self.vectors.shape[1]
        self.buckets = np.zeros((0, self.dimensions), np.float32) if buckets is None else buckets
        self.sizes = sizes
        share = self.counts / max(1, self.counts.sum())
        self._weights = (SMOOTHING / (SMOOTHING + share)).astype(np.float32)
        self._composed: dict[str, Vector] = {}

    def vector(self, word: str) -> Vector:
        """Return the vector of a word (dimensions,): its own, or the mean of its n-grams if it is unknown."""
        row = self.words.get(word)
        if row is not None:
            vector: Vector = self.vectors[row]
            return vector
        if word not in self._composed:
            if len(self._composed) >= REMEMBERED:
                self._composed.clear()
            self._composed[word] = self._compose(word)
        return self._composed[word]

    def weight(self, word: str) -> float:
        """Return the weight of a word: 1 if it is rare or unknown, near 0 if it is frequent."""
        row = self.words.get(word)
        return 1.0 if row is None else float(self._weights[row])

    def size(self, kinds: Sequence[str]) -> int:
        """Return the number of values that `means` returns for a text."""
        return sum(SKETCH if kind == "sketch" else self.dimensions for kind in kinds)

    def means(self, texts: Sequence[str], kinds: Sequence[str] = ("mean",), longest: int = 0) -> Floats:
        """Return the means of each text's words (texts, size of the kinds); zeros for a text without words.

        Args:
            texts: sentences or names.
            kinds: `mean` (CDV, equation 8; unknown words count as zeros), `unit` (the mean of fastText: each vector
                is divided by its length first), `weighted` (the same, with larger weights for rare words), `sketch`
                (weighted, with a vector that identifies the word but not its meaning).
            longest: the maximum number of words to read; 0 for all.
        """
        means = np.zeros((len(texts), self.size(kinds)), np.float32)
        for row, text in enumerate(texts):
            words = words_of(text)[: longest or None]
            if not words:
                continue
            vectors = np.stack([self.vector(word) for word in words])  # (words, dimensions)
            lengths = np.maximum(np.linalg.norm(vectors, axis=1), 1e-12)
            weights = np.array([self.weight(word) for word in words], np.float32)
            parts = []
            for kind in kinds:
                if kind == "mean":
                    parts.append(vectors.mean(0))
                elif kind == "unit":
                    parts.append((1 / lengths) @ vectors / len(words))
                elif kind == "weighted":
                    parts.append((weights / lengths) @ vectors / weights.sum())
                else:
                    parts.append(weights @ np.stack([signs(word) for word in words]) / weights.sum())
            means[row] = np.concatenate(parts)
        return means

    def _compose(self, word: str) -> Vector:
        if not len(self.buckets):
            return np.zeros(self.dimensions, np.float32)
        rows = [bucket(gram, len(self.buckets)) for gram in grams(word, *self.sizes)]
        mean: Vector = self.buckets[rows].astype(np.float32).mean(0) if rows else np.zeros(self.dimensions, np.float32)
        return mean

    def save(self, path: Path) -> None:
        """Write an .npz file, with the vectors in 16 bits."""
        arrays.save(
            path,
            words=np.frombuffer("\n".join(self.words).encode(), np.uint8),
            vectors=self.vectors.astype(np.float16),
            counts=self.counts,
            buckets=self.buckets.astype(np.float16),
            sizes=np.array(self.sizes),
        )

    @classmethod
    def load(cls, path: Path) -> Subwords:
        """Load a file that `save` wrote.

        Raises:
            CaprError: the file is missing, damaged or something else.
        """
        names = ("words", "vectors", "counts", "buckets", "sizes")
        joined_words, vectors, counts, buckets, sizes = arrays.load(path, "word vectors", *names)
        words = joined_words.tobytes().decode(errors="replace").split("\n")
        if (
            sizes.shape != (2,)
            or vectors.shape[0] != len(words)
            or len(counts) != len(words)
            or buckets.shape[1:] != vectors.shape[1:]
        ):
            fact = f"{len(words)} words, vectors of shape {vectors.shape}, buckets of shape {buckets.shape}"
            raise CaprError(f"{path} is inconsistent: {fact}. Fix: copy the folder of the model again.")
        return cls(words, vectors, counts, buckets, (int(sizes[0]), int(sizes[1])))


def read_glove(path: Path, dimensions: int = 0) -> Subwords:
    """Read the vectors of a GloVe text file: a word and its numbers on each line, separated by blanks.

    Such a file has no frequencies, but lists the most frequent words first. The n-th word is assumed to occur 1/n as
    often as the first (Zipf's law). If the first line has two numbers, as word2vec writes it, it is skipped.

    Args:
        path: the file.
        dimensions: the required number of values of a vector; 0 for that of the first line.

    Raises:
        CaprError: a line has another number of values, or a value that is not a finite number.
    """
    words: dict[str, Floats] = {}
    fix = "give a GloVe text file: a word and its numbers on each line, separated by blanks"
    if not path.is_file():
        raise CaprError(f"there is no {path}. Fix: {fix}.")
    with path.open("rb") as file:
        begin = file.read(len(max(PACKED, key=len)))
    if packed := next((name for mark, name in PACKED.items() if begin.startswith(mark)), ""):
        fix = "unpack it, and name the text file in it"
        raise CaprError(f"{path} is compressed ({packed}), not plain text. Fix: {fix}.")
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            columns = line.rstrip().split(" ")
            if number == 1 and len(columns) == 2 and all(column.isdecimal() for column in columns):
                continue
            size = dimensions or len(columns) - 1
            dimensions = size
            try:
                word, vector = _row(columns, size)
            except ValueError as error:
                raise CaprError(f"{path}, line {number}: {line[:40]!r} has {error}. Fix: {fix}.") from error
            words.setdefault(word, vector)
    if not words:
        raise CaprError(f"{path} is empty. Fix: {fix}.")
    counts = [max(1, 10_000_000 // rank) for rank in range(1, len(words) + 1)]
    return Subwords(list(words), np.stack(list(words.values())), counts)


def _row(columns: Sequence[str], size: int) -> tuple[str, Floats]:
    """Return the word and the vector of a line; the message of a ValueError says what the columns have instead."""
    if size < 1 or len(columns) <= size:
        raise ValueError(f"{len(columns) - 1} values instead of {max(1, size)}")
    # A word may contain blanks (". . ." in the published files), so a number before the vector is a surplus value.
    if len(columns) > size + 1 and _number(columns[-size - 1]) is not None:
        raise ValueError(f"more values than {size}")
    word, values = " ".join(columns[:-size]), [_number(column) for column in columns[-size:]]
    if not word or None in values:
        raise ValueError(f"no {size} numbers after a word")
    with np.errstate(over="ignore"):
        vector = np.array(values, np.float32)
    if not np.isfinite(vector).all():
        raise ValueError("a value that is not a finite number")
    return word, vector


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None

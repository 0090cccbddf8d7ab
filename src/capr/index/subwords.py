"""Word vectors that know the parts of words, so that a word nobody has seen has one; read with numpy alone.

Reference: Bojanowski et al., Enriching Word Vectors with Subword Information (fastText), 2017; the weighted mean of a
sentence is that of Arora et al., A Simple but Tough-to-Beat Baseline for Sentence Embeddings (SIF), 2017. A sketch
keeps which words were said, whatever they mean: Achlioptas, Database-friendly random projections, 2003.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from capr.documents import CaprError
from capr.index import arrays
from capr.index.onnx import Floats
from capr.index.protocol import Vector

WORD = re.compile(r"[^\W_]+")  # hyphens cut words, too: "Ehlers-Danlos" is found by either name
MEANS = ("mean", "weighted", "unit", "sketch")
SKETCH = 128  # dimensions of a sketch
SMOOTHING = 1e-4  # a of SIF: how rare a word has to be to count fully
REMEMBERED = 200_000  # words outside the vocabulary whose vectors are kept
UTF8 = 0x80
PACKED = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}


def words_of(text: str) -> list[str]:
    """The words of a text in lower case.

    >>> words_of("Ehlers-Danlos syndrome, type 4 (1899).")
    ['ehlers', 'danlos', 'syndrome', 'type', '4', '1899']
    """
    return WORD.findall(text.lower())


@lru_cache(REMEMBERED)
def signs(word: str) -> Vector:
    """(128,): a vector of length 1 that the word shares with no other, from the bits of its hash."""
    digest = hashlib.blake2b(word.encode(), digest_size=SKETCH // 8).digest()
    found: Vector = (2 * np.unpackbits(np.frombuffer(digest, np.uint8)).astype(np.float32) - 1) / np.sqrt(SKETCH)
    return found


def grams(word: str, shortest: int, longest: int) -> list[str]:
    """The character n-grams of a word with its ends marked.

    >>> grams("gout", 3, 4)
    ['<go', 'gou', 'out', 'ut>', '<gou', 'gout', 'out>']
    """
    marked = f"<{word}>"
    sizes = range(shortest, min(longest, len(marked)) + 1)
    return [marked[begin : begin + size] for size in sizes for begin in range(len(marked) - size + 1)]


def bucket(gram: str, buckets: int) -> int:
    """The bucket of an n-gram: FNV-1a of its UTF-8 bytes, those above 127 with their sign, as in fastText."""
    value = 2166136261
    for byte in gram.encode():
        value = ((value ^ (byte if byte < UTF8 else byte | 0xFFFFFF00)) * 16777619) & 0xFFFFFFFF
    return value % buckets


class Subwords:
    """Vectors of words and of their n-grams.

    Args:
        words: the vocabulary.
        vectors: (words, dimensions).
        counts: how often each word was seen, by which it is weighted.
        buckets: (buckets, dimensions), of n-grams; with no row, a word outside the vocabulary has a vector of zeros.
        sizes: of the shortest and the longest n-gram.
    """

    def __init__(
        self, words: Sequence[str], vectors: Floats, counts: Sequence[int] | NDArray[np.int64],
        buckets: Floats | None = None, sizes: tuple[int, int] = (3, 6),
    ) -> None:  # fmt: skip
        self.words = {word: place for place, word in enumerate(words)}
        self.vectors = np.asarray(vectors, np.float32)
        self.counts = np.asarray(counts, np.int64)
        self.dimensions = self.vectors.shape[1]
        self.buckets = np.zeros((0, self.dimensions), np.float32) if buckets is None else buckets
        self.sizes = sizes
        share = self.counts / max(1, self.counts.sum())
        self._weights = (SMOOTHING / (SMOOTHING + share)).astype(np.float32)
        self._others: dict[str, Vector] = {}

    def vector(self, word: str) -> Vector:
        """(dimensions,): of the word, or the mean of its n-grams."""
        place = self.words.get(word)
        if place is not None:
            known: Vector = self.vectors[place]
            return known
        if word not in self._others:
            if len(self._others) >= REMEMBERED:
                self._others.clear()
            self._others[word] = self._composed(word)
        return self._others[word]

    def weight(self, word: str) -> float:
        """How much a word counts: 1 if it is rare or unknown, little if it is everywhere."""
        place = self.words.get(word)
        return 1.0 if place is None else float(self._weights[place])

    def size(self, kinds: Sequence[str]) -> int:
        """How many values `means` gives for a text."""
        return sum(SKETCH if kind == "sketch" else self.dimensions for kind in kinds)

    def means(self, texts: Sequence[str], kinds: Sequence[str] = ("mean",), longest: int = 0) -> Floats:
        """(texts, size of the kinds): the means of each text's words; zeros for a text without words.

        Args:
            texts: sentences or names.
            kinds: `mean` (CDV, equation 8; unknown words count as zeros), `unit` (fastText's own: each word's vector
                is divided by its length first), `weighted` (the same, and rare words count more), `sketch` (rare
                words count more, and each has a vector that says nothing but which word it is).
            longest: words that are read, at most; 0 for all.
        """
        found = np.zeros((len(texts), self.size(kinds)), np.float32)
        for row, text in enumerate(texts):
            words = words_of(text)[: longest or None]
            if not words:
                continue
            vectors = np.stack([self.vector(word) for word in words])  # (words, dimensions)
            lengths = np.maximum(np.linalg.norm(vectors, axis=1), 1e-12)
            rare = np.array([self.weight(word) for word in words], np.float32)
            parts = []
            for kind in kinds:
                if kind == "mean":
                    parts.append(vectors.mean(0))
                elif kind == "unit":
                    parts.append((1 / lengths) @ vectors / len(words))
                elif kind == "weighted":
                    parts.append((rare / lengths) @ vectors / rare.sum())
                else:
                    parts.append(rare @ np.stack([signs(word) for word in words]) / rare.sum())
            found[row] = np.concatenate(parts)
        return found

    def _composed(self, word: str) -> Vector:
        if not len(self.buckets):
            return np.zeros(self.dimensions, np.float32)
        rows = [bucket(gram, len(self.buckets)) for gram in grams(word, *self.sizes)]
        mean: Vector = self.buckets[rows].astype(np.float32).mean(0) if rows else np.zeros(self.dimensions, np.float32)
        return mean

    def save(self, path: Path) -> None:
        """Writes an .npz, in 16 bits."""
        arrays.save(
            path, words=np.frombuffer("\n".join(self.words).encode(), np.uint8),
            vectors=self.vectors.astype(np.float16), counts=self.counts,
            buckets=self.buckets.astype(np.float16), sizes=np.array(self.sizes),
        )  # fmt: skip

    @classmethod
    def load(cls, path: Path) -> Subwords:
        """Reads what `save` has written.

        Raises:
            CaprError: the file is missing, damaged or something else.
        """
        names = ("words", "vectors", "counts", "buckets", "sizes")
        listed, vectors, counts, buckets, sizes = arrays.load(path, "word vectors", *names)
        words = listed.tobytes().decode(errors="replace").split("\n")
        if (
            sizes.shape != (2,)
            or vectors.shape[0] != len(words)
            or len(counts) != len(words)
            or buckets.shape[1:] != vectors.shape[1:]
        ):
            fact = f"{len(words)} words, vectors of shape {vectors.shape}, buckets of shape {buckets.shape}"
            raise CaprError(f"{path} does not fit together: {fact}. Fix: copy the folder of the model again.")
        return cls(words, vectors, counts, buckets, (int(sizes[0]), int(sizes[1])))


def read_glove(path: Path, dimensions: int = 0) -> Subwords:
    """The vectors of a GloVe text file: a word and its numbers a line, with blanks between.

    Such a file does not tell how often a word occurs, but the most frequent stand first, so that the n-th is taken to
    occur 1/n as often as the first (Zipf). A first line with two numbers, as word2vec writes it, is left out.

    Args:
        path: the file.
        dimensions: that the vectors must have; 0 for those of the first line.

    Raises:
        CaprError: a line has another number of values, or a value that is no finite number.
    """
    words: dict[str, Floats] = {}
    fix = "give a GloVe text file: a word and its numbers a line, with blanks between"
    if not path.is_file():
        raise CaprError(f"there is no {path}. Fix: {fix}.")
    with path.open("rb") as file:
        begin = file.read(len(max(PACKED, key=len)))
    if packed := next((name for mark, name in PACKED.items() if begin.startswith(mark)), ""):
        raise CaprError(f"{path} is packed ({packed}), and no text. Fix: unpack it, and name the text file in it.")
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
    counts = [max(1, 10_000_000 // place) for place in range(1, len(words) + 1)]
    return Subwords(list(words), np.stack(list(words.values())), counts)


def _row(columns: Sequence[str], size: int) -> tuple[str, Floats]:
    """A word and its vector; ValueError tells what the columns have instead."""
    if size < 1 or len(columns) <= size:
        raise ValueError(f"{len(columns) - 1} values instead of {max(1, size)}")
    # A word may have blanks in it, as ". . ." of the published files; a number before the numbers is one too many.
    if len(columns) > size + 1 and _number(columns[-size - 1]) is not None:
        raise ValueError(f"more values than {size}")
    word, values = " ".join(columns[:-size]), [_number(column) for column in columns[-size:]]
    if not word or None in values:
        raise ValueError(f"no {size} numbers after a word")
    with np.errstate(over="ignore"):
        vector = np.array(values, np.float32)
    if not np.isfinite(vector).all():
        raise ValueError("a value that is no finite number")
    return word, vector


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None

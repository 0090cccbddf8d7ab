"""Inputs of rankers: a query and a passage as arrays for a network. Training and search use the same code.

A network takes the arrays that its inputs name. Its first output has a score for each pair. The optional output
`sentences` has a score for each sentence of the passage, (pairs, sentences).

To add inputs, write a file with a class like those below, and add a line to `INPUTS` in `capr.runtime.ranker`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from capr.documents import CaprError, Span
from capr.runtime.onnx import TOGETHER, check_positions
from capr.runtime.pieces import NAMES, load_tokenizer, padded
from capr.text.words import WORD

if TYPE_CHECKING:
    from capr.runtime.ranker import RankerManifest

Arrays = dict[str, NDArray[Any]]
SENTENCES = "sentence_numbers"  # (pairs, pieces or words): the number of the sentence of each, from 1; 0 for none
PADDING, UNKNOWN = 0, 1  # ids of words
WORDS = "words.tsv"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage to rank.

    Attributes:
        text: the text that the ranker reads.
        sentences: the spans of the sentences in the text; empty if the caller needs no scores of sentences.
    """

    text: str
    sentences: tuple[Span, ...] = ()


class Pair(NamedTuple):
    """A query and a passage as ids.

    Attributes:
        ids: the ids, in the form that `arrays` of the same inputs reads.
        length: the length of the pair; a batch has pairs of similar length.
    """

    ids: Any
    length: int


class Inputs(Protocol):
    """The conversion of queries and passages to arrays.

    Attributes:
        names: the names of the arrays.
        together: the maximum sum of the lengths of a batch, with padding.
    """

    @property
    def names(self) -> Sequence[str]: ...

    @property
    def together(self) -> int: ...

    def pairs(self, query: str, passages: Sequence[Candidate]) -> list[Pair]:
        """Return a pair of the query with each passage."""

    def arrays(self, pairs: Sequence[Pair]) -> Arrays:
        """Return the padded inputs of the network."""


class PieceInputs:
    """Word pieces of the query and then of the passage, for a transformer; see `tokenizer.json`.

    Args:
        tokenizer: a tokenizer that truncates pairs to the length that the network reads.
    """

    file: ClassVar[str] = "tokenizer.json"
    names = (*NAMES, SENTENCES)
    together = TOGETHER

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    @classmethod
    def of(cls, folder: Path, manifest: RankerManifest, pieces: int) -> PieceInputs:
        """Make the inputs of a model that reads at most `pieces` word pieces; 0 for the number of its manifest."""
        check_positions(folder, pieces or manifest.pieces)
        return cls.load(folder, pieces or manifest.pieces)

    @classmethod
    def load(cls, folder: Path, pieces: int) -> PieceInputs:
        """Make the inputs of the model in a folder, which reads at most `pieces` word pieces."""
        return cls(load_tokenizer(folder, pieces))

    def pairs(self, query: str, passages: Sequence[Candidate]) -> list[Pair]:
        texts = [(query, passage.text) for passage in passages]
        if not any(passage.sentences for passage in passages):
            encodings = self.tokenizer.encode_batch_fast(texts)
        else:  # slower, and returns the offsets of the pieces
            encodings = self.tokenizer.encode_batch(texts)
        return [
            Pair((encoding, passage.sentences), len(encoding.ids))
            for encoding, passage in zip(encodings, passages, strict=True)
        ]

    def arrays(self, pairs: Sequence[Pair]) -> Arrays:
        arrays: Arrays = dict(padded([encoding for (encoding, _), _ in pairs]))
        numbers = np.zeros_like(arrays["input_ids"])
        for row, ((encoding, sentences), _) in enumerate(pairs):
            if sentences:
                begins = np.array(encoding.offsets, np.int64).reshape(-1, 2)[:, 0]
                in_passage = np.array([text == 1 for text in encoding.sequence_ids], bool)
                numbers[row, : len(begins)] = sentence_numbers(begins, sentences) * in_passage
        return arrays | {SENTENCES: numbers}


class WordInputs:
    """The ids and the IDF of the words of the query and of the passage, for networks over word vectors.

    Arrays: `query_ids` and `passage_ids` (pairs, words), 0 for padding and 1 for a word outside the vocabulary;
    `query_idf` and `passage_idf` (pairs, words), 0 for padding.

    Args:
        idf: the inverse document frequency of each word of the vocabulary; the ids begin at 2 in this order.
        query_words: the maximum number of words of a query.
        passage_words: the maximum number of words of a passage.
    """

    file: ClassVar[str] = WORDS
    names = ("query_ids", "passage_ids", "query_idf", "passage_idf", SENTENCES)
    together = 65_536

    def __init__(self, idf: Mapping[str, float], query_words: int = 32, passage_words: int = 256) -> None:
        self.idf, self.query_words, self.passage_words = dict(idf), query_words, passage_words
        self._ids = {word: number for number, word in enumerate(self.idf, UNKNOWN + 1)}
        highest = max(self.idf.values(), default=0.0)
        self._idf_by_id = np.array([0.0, highest, *self.idf.values()], np.float32)

    def __len__(self) -> int:
        """Return the number of ids, with those for padding and unknown words."""
        return len(self._idf_by_id)

    @property
    def vocabulary(self) -> list[str]:
        """The words in the order of their ids, which begin at 2."""
        return list(self.idf)

    @classmethod
    def fitted(
        cls, texts: Iterable[str], query_words: int = 32, passage_words: int = 256, least: int = 1
    ) -> WordInputs:
        """Make a vocabulary of the words that occur in at least `least` texts, the most frequent words first."""
        counts: Counter[str] = Counter()
        total = 0
        for text in texts:
            total += 1
            counts.update({word for word, _ in words_in(text)})
        words = sorted((word for word, count in counts.items() if count >= least), key=lambda w: (-counts[w], w))
        idf = {word: math.log(1 + (total - counts[word] + 0.5) / (counts[word] + 0.5)) for word in words}
        return cls(idf, query_words, passage_words)

    def save(self, folder: Path) -> None:
        """Write words.tsv into a model's folder."""
        lines = (f"{word}\t{value:.6g}\n" for word, value in self.idf.items())
        (folder / WORDS).write_text("".join(lines), "utf-8")

    @classmethod
    def of(cls, folder: Path, manifest: RankerManifest, pieces: int) -> WordInputs:
        """Make the inputs of a model that reads as many words as its manifest says."""
        return cls.load(folder, manifest.query_words, manifest.passage_words)

    @classmethod
    def load(cls, folder: Path, query_words: int = 32, passage_words: int = 256) -> WordInputs:
        """Load the file that `save` wrote.

        Raises:
            CaprError: the file is missing, or one of its lines is invalid.
        """
        path, idf = folder / WORDS, {}
        if not path.is_file():
            raise CaprError(f"{folder} has no {WORDS}, the words that its network knows. Fix: copy the folder again.")
        for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
            word, _, value = line.partition("\t")
            try:
                idf[word] = float(value)
            except ValueError as error:
                fix = "copy the folder of the model again"
                fact = f"{line[:40]!r} is not a word and a number"
                raise CaprError(f"{path}, line {number}: {fact}. Fix: {fix}.") from error
        return cls(idf, query_words, passage_words)

    def pairs(self, query: str, passages: Sequence[Candidate]) -> list[Pair]:
        query_ids = self._read(query, self.query_words)[0]
        pairs = []
        for passage in passages:
            ids, begins = self._read(passage.text, self.passage_words)
            numbers = sentence_numbers(begins, passage.sentences)
            pairs.append(Pair((query_ids, ids, numbers), len(query_ids) + len(ids)))
        return pairs

    def arrays(self, pairs: Sequence[Pair]) -> Arrays:
        query = _padded([ids[0] for ids, _ in pairs])
        passage = _padded([ids[1] for ids, _ in pairs])
        return {
            "query_ids": query,
            "passage_ids": passage,
            "query_idf": self._idf_by_id[query],
            "passage_idf": self._idf_by_id[passage],
            SENTENCES: _padded([ids[2] for ids, _ in pairs]),
        }

    def _read(self, text: str, longest: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the ids of the first words of a text, and the offsets where they begin."""
        words = words_in(text)[:longest]
        ids = np.array([self._ids.get(word, UNKNOWN) for word, _ in words], np.int64)
        return ids, np.array([begin for _, begin in words], np.int64)


def words_in(text: str) -> list[tuple[str, int]]:
    """Return the words of a text in lower case, and the offset where each begins.

    >>> words_in("No fever.")
    [('no', 0), ('fever', 3)]
    """
    return [(match[0].lower(), match.start()) for match in WORD.finditer(text)]


def sentence_numbers(begins: NDArray[np.int64], sentences: Sequence[Span]) -> NDArray[np.int64]:
    """Return for each offset of a text the number of the sentence that contains it, counted from 1; 0 for none.

    >>> sentence_numbers(np.array([0, 4, 10, 30]), [Span(0, 9), Span(10, 20)]).tolist()
    [1, 1, 2, 0]
    """
    if not sentences:
        return np.zeros(len(begins), np.int64)
    last = np.searchsorted([span.begin for span in sentences], begins, "right")  # the last to begin there or before
    ends = np.array([0, *(span.end for span in sentences)])
    return np.where(begins < ends[last], last, 0).astype(np.int64)


def _padded(rows: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the rows padded with zeros to (rows, longest), with at least one column."""
    table = np.zeros((len(rows), max(1, *(len(row) for row in rows))), np.int64)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    return table

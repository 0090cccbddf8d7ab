"""Windows: how much of a text a network sees at once, and in what form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer


class Window(NamedTuple):
    """Consecutive words that the network sees together.

    Attributes:
        pieces: what each position of the input holds.
        firsts: the position that speaks for each word, -1 for a word that none does.
    """

    pieces: list[Any]
    firsts: list[int]


class Words(Protocol):
    """How a network reads words: windows of sentences as its input arrays."""

    def windows(self, cut: Sequence[Sequence[str]]) -> Iterator[Window]:
        """Packs consecutive sentences into as few windows as fit."""

    def arrays(self, windows: Sequence[Window]) -> dict[str, NDArray[Any]]:
        """The input of the network, padded."""


class Pieces:
    """Word pieces as a transformer reads them: `[CLS] marker pieces of the words [SEP]`.

    The marker is a token that says whose guideline to follow, since corpora differ in what they call a disease.
    """

    def __init__(self, tokenizer: Tokenizer, marker: str, length: int) -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self.tokenizer = tokenizer
        self.length = length
        self.first = [tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id(marker)]
        self.last = [tokenizer.token_to_id("[SEP]")]

    def windows(self, cut: Sequence[Sequence[str]]) -> Iterator[Window]:
        """Windows of at most `length` pieces; a sentence that is longer goes on in the next one."""
        room = self.length - len(self.first) - len(self.last)
        ids: list[int] = []
        firsts: list[int] = []
        encodings = self.tokenizer.encode_batch(list(cut), is_pretokenized=True, add_special_tokens=False)
        for words, encoding in zip(cut, encodings, strict=True):
            pieces = encoding.ids  # a copy each time it is asked for
            if ids and len(ids) + len(pieces) > room:
                yield Window([*self.first, *ids, *self.last], firsts)
                ids, firsts = [], []
            for begin, end in _ranges(encoding.word_ids, len(words)):
                if firsts and len(ids) + min(end - begin, room) > room:
                    yield Window([*self.first, *ids, *self.last], firsts)
                    ids, firsts = [], []
                firsts.append(len(self.first) + len(ids) if begin < end else -1)
                ids.extend(pieces[begin : min(end, begin + room)])
        if firsts:
            yield Window([*self.first, *ids, *self.last], firsts)

    def arrays(self, windows: Sequence[Window]) -> dict[str, NDArray[Any]]:
        """`input_ids` and `attention_mask` (windows, pieces)."""
        shape = len(windows), max(len(window.pieces) for window in windows)
        ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for row, window in enumerate(windows):
            ids[row, : len(window.pieces)] = window.pieces
            mask[row, : len(window.pieces)] = 1
        return {"input_ids": ids, "attention_mask": mask}


def _ranges(word_ids: Sequence[int | None], count: int) -> Iterator[tuple[int, int]]:
    """The range of pieces of each word; empty for a word that the tokenizer drops."""
    position = 0
    for word in range(count):
        begin = position
        while position < len(word_ids) and word_ids[position] == word:
            position += 1
        yield begin, position

"""Windows of the tagger: consecutive words that the network reads at once, and their input arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class TaggerWindow(NamedTuple):
    """Consecutive words that the network reads together.

    Attributes:
        pieces: the content of each position of the input.
        firsts: the position whose output labels each word; -1 for a word without a position.
    """

    pieces: list[Any]
    firsts: list[int]


class TaggerInputs(Protocol):
    """The conversion of sentences to windows, and of windows to the input arrays of a network."""

    def windows(self, cut: Sequence[Sequence[str]]) -> Iterator[TaggerWindow]:
        """Pack consecutive sentences into as few windows as possible."""

    def arrays(self, windows: Sequence[TaggerWindow]) -> dict[str, NDArray[Any]]:
        """Return the padded input arrays of the network."""


class TaggerPieces:
    """Word pieces for a transformer: `[CLS] marker pieces of the words [SEP]`.

    The marker is a token that selects an annotation guideline, because corpora define diseases differently.
    """

    def __init__(self, tokenizer: Tokenizer, marker: str, length: int) -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self.tokenizer = tokenizer
        self.length = length
        self.first = [tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id(marker)]
        self.last = [tokenizer.token_to_id("[SEP]")]

    def windows(self, cut: Sequence[Sequence[str]]) -> Iterator[TaggerWindow]:
        """Yield windows of at most `length` pieces; a longer sentence continues in the next window."""
        room = self.length - len(self.first) - len(self.last)
        ids: list[int] = []
        firsts: list[int] = []
        encodings = self.tokenizer.encode_batch(list(cut), is_pretokenized=True, add_special_tokens=False)
        for words, encoding in zip(cut, encodings, strict=True):
            pieces = encoding.ids  # every access makes a copy
            if ids and len(ids) + len(pieces) > room:
                yield TaggerWindow([*self.first, *ids, *self.last], firsts)
                ids, firsts = [], []
            for begin, end in _ranges(encoding.word_ids, len(words)):
                if firsts and len(ids) + min(end - begin, room) > room:
                    yield TaggerWindow([*self.first, *ids, *self.last], firsts)
                    ids, firsts = [], []
                firsts.append(len(self.first) + len(ids) if begin < end else -1)
                ids.extend(pieces[begin : min(end, begin + room)])
        if firsts:
            yield TaggerWindow([*self.first, *ids, *self.last], firsts)

    def arrays(self, windows: Sequence[TaggerWindow]) -> dict[str, NDArray[Any]]:
        """Return `input_ids` and `attention_mask` (windows, pieces)."""
        shape = len(windows), max(len(window.pieces) for window in windows)
        ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for row, window in enumerate(windows):
            ids[row, : len(window.pieces)] = window.pieces
            mask[row, : len(window.pieces)] = 1
        return {"input_ids": ids, "attention_mask": mask}


def _ranges(word_ids: Sequence[int | None], count: int) -> Iterator[tuple[int, int]]:
    """Yield the range of pieces of each word; empty for a word that the tokenizer drops."""
    position = 0
    for word in range(count):
        begin = position
        while position < len(word_ids) and word_ids[position] == word:
            position += 1
        yield begin, position

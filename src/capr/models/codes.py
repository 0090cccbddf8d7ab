"""The spaces of CDV: an LSTM in each direction reads a description and predicts the Bloom code of what it describes.

Reference: Arnold et al. (CDV), 2020, equations 2 to 5, and its released code. The embedding is e = tanh(W [f; b] + c)
with the last state of either direction (the code), or (f + b) / 2 (equation 4); the outputs are sigmoid(U e), one for
each bit of the code. The loss is BP-MLL: Zhang and Zhou, Multilabel Neural Networks with Applications to Functional
Genomics and Text Categorization, 2006.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

BITS, HASHES = 1024, 5
MASK = (1 << 64) - 1


class CodeNetwork(nn.Module):
    """Word vectors of a text to its embedding and its Bloom code.

    Args:
        inputs: size of a word's vector.
        size: of the states and of the embedding.
        dense: whether the embedding is a dense layer (the code) or the mean of the end states (equation 4).
        dropout: share of the input that is left out in training.
    """

    def __init__(self, inputs: int, size: int = 128, dense: bool = True, dropout: float = 0.5) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.lstm = nn.LSTM(inputs, size, batch_first=True, bidirectional=True)
        self.dense = nn.Linear(2 * size, size) if dense else None
        self.output = nn.Linear(size, BITS)

    def embedding(self, words: Tensor, lengths: Tensor | None = None) -> Tensor:
        # words: (texts, words, inputs); lengths: (texts,), on the CPU; None if all are as long
        words = self.dropout(words)
        if lengths is not None:
            packed = pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False)
            ends = self.lstm(packed)[1][0]  # (2, texts, size): the last state of either direction
        else:
            ends = self.lstm(words)[1][0]
        if self.dense is None:
            return ends.mean(0)  # (texts, size)
        return torch.tanh(self.dense(torch.cat([ends[0], ends[1]], -1)))  # (texts, size)

    def forward(self, words: Tensor, lengths: Tensor | None = None) -> Tensor:
        return torch.sigmoid(self.output(self.embedding(words, lengths)))  # (texts, bits)


class Embedding(nn.Module):
    """The network as it is exported: one text to its embedding."""

    def __init__(self, model: CodeNetwork) -> None:
        super().__init__()
        self.model = model

    def forward(self, words: Tensor) -> Tensor:
        return self.model.embedding(words)  # (texts, size)


def bp_mll(outputs: Tensor, wanted: Tensor) -> Tensor:
    """The mean over all pairs of a bit that is set and one that is not of exp(-(o_set - o_unset)), then over texts.

    Args:
        outputs: (texts, bits).
        wanted: (texts, bits), of 0 and 1; each text has both.
    """
    # The sum over pairs is the product of two sums.
    high = (torch.exp(-outputs) * wanted).sum(-1) / wanted.sum(-1)
    low = (torch.exp(outputs) * (1 - wanted)).sum(-1) / (1 - wanted).sum(-1)
    return (high * low).mean()


def bloom(keys: list[str]) -> Tensor:
    """(bits,): the Bloom code of some keys, five bits each: (h1 + i h2) mod 1,024 of the halves of murmur3-128."""
    code = torch.zeros(BITS)
    for key in keys:
        first, second = murmur3(key.encode())
        code[[((first + i * second) & MASK) % BITS for i in range(HASHES)]] = 1
    return code


def murmur3(data: bytes, seed: int = 0) -> tuple[int, int]:
    """The two halves of MurmurHash3's 128 bits for 64-bit machines, by Austin Appleby.

    >>> [hex(half) for half in murmur3(b"The quick brown fox jumps over the lazy dog")]
    ['0xe34bbc7bbc071b6c', '0x7a433ca9c49a9347']
    """
    one, two = 0x87C37B91114253D5, 0x4CF5AD432745937F

    def rotated(value: int, by: int) -> int:
        return ((value << by) | (value >> (64 - by))) & MASK

    def mixed(value: int) -> int:
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            value = ((value ^ (value >> 33)) * factor) & MASK
        return value ^ (value >> 33)

    def low(value: int) -> int:
        return (rotated((value * one) & MASK, 31) * two) & MASK

    def high(value: int) -> int:
        return (rotated((value * two) & MASK, 33) * one) & MASK

    h1 = h2 = seed
    whole = len(data) // 16 * 16
    for begin in range(0, whole, 16):
        h1 ^= low(int.from_bytes(data[begin : begin + 8], "little"))
        h1 = ((rotated(h1, 27) + h2) * 5 + 0x52DCE729) & MASK
        h2 ^= high(int.from_bytes(data[begin + 8 : begin + 16], "little"))
        h2 = ((rotated(h2, 31) + h1) * 5 + 0x38495AB5) & MASK
    tail = data[whole:]
    if len(tail) > 8:
        h2 ^= high(int.from_bytes(tail[8:], "little"))
    if tail:
        h1 ^= low(int.from_bytes(tail[:8], "little"))
    h1, h2 = h1 ^ len(data), h2 ^ len(data)
    h1 = (h1 + h2) & MASK
    h2 = (h2 + h1) & MASK
    h1, h2 = mixed(h1), mixed(h2)
    h1 = (h1 + h2) & MASK
    return h1, (h2 + h1) & MASK

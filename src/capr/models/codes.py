"""The spaces of CDV: a bidirectional LSTM reads a description and predicts the Bloom code of its subject.

Reference: Arnold et al. (CDV), 2020, equations 2 to 5, and its released code. With the last states f and b of the two
directions, the embedding is e = tanh(W [f; b] + c) (the code) or (f + b) / 2 (equation 4). The outputs are
sigmoid(U e), one for each bit of the code. The loss is BP-MLL: Zhang and Zhou, Multilabel Neural Networks with
Applications to Functional Genomics and Text Categorization, 2006.
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
        size: size of the states and of the embedding.
        dense: whether the embedding is a dense layer (the code) or the mean of the end states (equation 4).
        dropout: share of the input that training drops.
    """

    def __init__(self, inputs: int, size: int = 128, dense: bool = True, dropout: float = 0.5) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.lstm = nn.LSTM(inputs, size, batch_first=True, bidirectional=True)
        self.dense = nn.Linear(2 * size, size) if dense else None
        self.output = nn.Linear(size, BITS)

    def embedding(self, words: Tensor, lengths: Tensor | None = None) -> Tensor:
        # words: (texts, words, inputs); lengths: (texts,), on the CPU; None if all lengths are equal
        words = self.dropout(words)
        if lengths is not None:
            packed = pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False)
            ends = self.lstm(packed)[1][0]  # (2, texts, size): the last state of each direction
        else:
            ends = self.lstm(words)[1][0]
        if self.dense is None:
            return ends.mean(0)  # (texts, size)
        return torch.tanh(self.dense(torch.cat([ends[0], ends[1]], -1)))  # (texts, size)

    def forward(self, words: Tensor, lengths: Tensor | None = None) -> Tensor:
        return torch.sigmoid(self.output(self.embedding(words, lengths)))  # (texts, bits)


class CodeNetworkForExport(nn.Module):
    """The network for export: one text to its embedding."""

    def __init__(self, model: CodeNetwork) -> None:
        super().__init__()
        self.model = model

    def forward(self, words: Tensor) -> Tensor:
        return self.model.embedding(words)  # (texts, size)


def bp_mll(outputs: Tensor, codes: Tensor) -> Tensor:
    """Return the mean of exp(-(o_set - o_unset)) over all pairs of a set and an unset bit, then over texts.

    Args:
        outputs: (texts, bits).
        codes: (texts, bits), of 0 and 1. Each text has both.
    """
    # The sum over pairs is the product of two sums.
    set_bits = (torch.exp(-outputs) * codes).sum(-1) / codes.sum(-1)
    unset_bits = (torch.exp(outputs) * (1 - codes)).sum(-1) / (1 - codes).sum(-1)
    return (set_bits * unset_bits).mean()


def bloom(keys: list[str]) -> Tensor:
    """Return the Bloom code of keys (bits,), with five bits per key: (h1 + i h2) mod 1,024, where h is murmur3-128."""
    code = torch.zeros(BITS)
    for key in keys:
        first, second = murmur3(key.encode())
        code[[((first + i * second) & MASK) % BITS for i in range(HASHES)]] = 1
    return code


def murmur3(data: bytes, seed: int = 0) -> tuple[int, int]:
    """Return the two halves of MurmurHash3 (Austin Appleby) with 128 bits, for 64-bit machines.

    >>> [hex(half) for half in murmur3(b"The quick brown fox jumps over the lazy dog")]
    ['0xe34bbc7bbc071b6c', '0x7a433ca9c49a9347']
    """
    first_factor, second_factor = 0x87C37B91114253D5, 0x4CF5AD432745937F

    def rotate(value: int, by: int) -> int:
        return ((value << by) | (value >> (64 - by))) & MASK

    def mix(value: int) -> int:
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            value = ((value ^ (value >> 33)) * factor) & MASK
        return value ^ (value >> 33)

    def scramble_first(value: int) -> int:
        return (rotate((value * first_factor) & MASK, 31) * second_factor) & MASK

    def scramble_second(value: int) -> int:
        return (rotate((value * second_factor) & MASK, 33) * first_factor) & MASK

    h1 = h2 = seed
    whole = len(data) // 16 * 16
    for begin in range(0, whole, 16):
        h1 ^= scramble_first(int.from_bytes(data[begin : begin + 8], "little"))
        h1 = ((rotate(h1, 27) + h2) * 5 + 0x52DCE729) & MASK
        h2 ^= scramble_second(int.from_bytes(data[begin + 8 : begin + 16], "little"))
        h2 = ((rotate(h2, 31) + h1) * 5 + 0x38495AB5) & MASK
    tail = data[whole:]
    if len(tail) > 8:
        h2 ^= scramble_second(int.from_bytes(tail[8:], "little"))
    if tail:
        h1 ^= scramble_first(int.from_bytes(tail[:8], "little"))
    h1, h2 = h1 ^ len(data), h2 ^ len(data)
    h1 = (h1 + h2) & MASK
    h2 = (h2 + h1) & MASK
    h1, h2 = mix(h1), mix(h2)
    h1 = (h1 + h2) & MASK
    return h1, (h2 + h1) & MASK

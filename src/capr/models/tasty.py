"""TASTY: letter trigrams and a bidirectional LSTM tag the words of a sentence.

Reference: Arnold, Gers, Kilias and Löser, Robust Named Entity Recognition in Idiosyncratic Domains, 2016. The details
follow its released code (TeXoo): two dense layers over a binary vector of each word, and a BLSTM with averaged
directions. `capr.runtime.trigrams` makes the vectors.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Tasty(nn.Module):
    """Two dense layers, a BLSTM and a linear layer."""

    def __init__(self, size: int, labels: int, dense: int = 512, hidden: int = 256) -> None:
        super().__init__()
        self.dense = nn.Sequential(nn.Linear(size, dense), nn.ReLU(), nn.Linear(dense, dense), nn.ReLU())
        self.lstm = nn.LSTM(dense, hidden, batch_first=True, bidirectional=True)
        self.output = nn.Linear(hidden, labels)

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        # words: (batch, words, size); lengths: (batch), on the CPU
        packed = pack_padded_sequence(self.dense(words), lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)  # (batch, words, 2 hidden)
        forward, backward = states.chunk(2, dim=-1)
        return self.output((forward + backward) / 2)  # (batch, words, labels)

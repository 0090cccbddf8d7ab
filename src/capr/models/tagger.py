"""A transformer that tags the words of a text: one label for each word, read off its first piece.

Entities are BIO-tagged. A *marker* token before the text says whose guideline the labels follow, since corpora differ
in what they call a disease; a word of a corpus that leaves a type out is trained against the set of labels that it
may have.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn


class TransformerTagger(nn.Module):
    """Encoder, dropout, linear layer."""

    def __init__(self, encoder: Any, labels: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.encoder = encoder
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(encoder.config.hidden_size, labels)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        # input_ids, attention_mask: (batch, pieces)
        states = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return self.output(self.dropout(states))  # (batch, pieces, labels)


def loss(scores: Tensor, allowed: Tensor) -> Tensor:
    """Cross-entropy against sets of labels.

    Args:
        scores: (batch, pieces, labels).
        allowed: (batch, pieces, labels), true for each label that the piece may have; none where it does not count.
    """
    counts = allowed.any(-1)  # (batch, pieces)
    logs = scores.float().log_softmax(-1)[counts]  # (counted, labels)
    return -logs.masked_fill(~allowed[counts], float("-inf")).logsumexp(-1).mean()


def distance(scores: Tensor, taught: Tensor, counts: Tensor) -> Tensor:
    """How far a student's labels are from its teacher's: cross-entropy of the two distributions.

    Args:
        scores: (batch, pieces, labels), of the student.
        taught: (batch, pieces, labels), of the teacher.
        counts: (batch, pieces), which pieces count.
    """
    return -(taught.float().softmax(-1) * scores.float().log_softmax(-1)).sum(-1)[counts].mean()

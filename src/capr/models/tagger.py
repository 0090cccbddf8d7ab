"""A transformer that tags the words of a text. The first word piece of a word decides its label.

Labels are in BIO format. A *marker* token before the text names the guideline of the labels, because corpora define
diseases differently. If a corpus omits a type of entity, the loss accepts any label that the word may have.
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
    """Return the cross-entropy against sets of labels.

    Args:
        scores: (batch, pieces, labels).
        allowed: (batch, pieces, labels), true for each label that the piece may have. The loss ignores pieces without
            any.
    """
    counts = allowed.any(-1)  # (batch, pieces)
    logs = scores.float().log_softmax(-1)[counts]  # (counted, labels)
    return -logs.masked_fill(~allowed[counts], float("-inf")).logsumexp(-1).mean()


def distance(scores: Tensor, teacher: Tensor, counts: Tensor) -> Tensor:
    """Return the cross-entropy of a student's distribution over labels against its teacher's.

    Args:
        scores: (batch, pieces, labels), the scores of the student.
        teacher: (batch, pieces, labels), the scores of the teacher.
        counts: (batch, pieces), true for the pieces that count.
    """
    return -(teacher.float().softmax(-1) * scores.float().log_softmax(-1)).sum(-1)[counts].mean()

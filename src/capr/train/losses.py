"""Losses of rankings."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def listwise(scores: Tensor, answers: Tensor, left_out: Tensor | None = None) -> Tensor:
    """Cross-entropy of the passage that answers against all others (CAPR, equation 1).

    Args:
        scores: (queries, passages).
        answers: (queries,), the number of the passage that answers each.
        left_out: (queries, passages), true for passages that may answer as well and so do not count.
    """
    if left_out is not None:
        scores = scores.masked_fill(left_out, float("-inf"))
    return nn.functional.cross_entropy(scores.float(), answers)


def taught(scores: Tensor, teacher: Tensor, temperature: float = 1.0) -> Tensor:
    """How far a student's ranking is from its teacher's: the divergence of the two distributions over a list.

    Args:
        scores: (queries, passages), of the student.
        teacher: (queries, passages), of the teacher; -inf where a list is shorter.
        temperature: the higher, the more the order of the passages that do not answer counts.
    """
    missing = teacher.isinf()
    wanted = (teacher.float() / temperature).softmax(-1)
    known = (scores.float().masked_fill(missing, float("-inf")) / temperature).log_softmax(-1)
    reference = (teacher.float() / temperature).log_softmax(-1)
    distance = torch.where(missing, torch.zeros_like(wanted), wanted * (reference - known))
    return distance.sum(-1).mean() * temperature**2


Halves = tuple[Tensor, Tensor]  # of the entity and of the aspect


def softmax_over(
    vectors: Tensor, labels: Tensor, rows: Tensor, columns: Tensor, shares: Tensor, temperature: float
) -> Tensor:
    """Cross-entropy of the labels of each vector against all labels, by cosine.

    Args:
        vectors: (vectors, dimensions).
        labels: (labels, dimensions), of length 1.
        rows: (pairs,), vectors that have a label.
        columns: (pairs,), that label.
        shares: (pairs,), how much of its vector each label is.
        temperature: by which cosines are divided.
    """
    cosines = nn.functional.normalize(vectors, dim=-1) @ labels.T  # (vectors, labels)
    likely = (cosines / temperature).log_softmax(-1)
    return -(likely[rows, columns] * shares).sum() / shares.sum().clamp(min=1e-6)


def distances(found: Halves, wanted: Halves, counted: Halves) -> Tensor:
    """The mean over sentences of |e - e'| + |a - a'| (CDV, equation 12); `counted` (sentences,) is 0 without label."""
    return _apart(found, wanted, counted).mean()


def smoothed(found: Halves, wanted: Halves, counted: Halves) -> Tensor:
    """The mean over sentences of sqrt(1 + ((|e - e'| + |a - a'|) / 4)^2) - 1 (CDV, equation 17)."""
    return ((1 + (_apart(found, wanted, counted) / 4) ** 2).sqrt() - 1).mean()


def element_wise(found: Halves, wanted: Halves, counted: Halves) -> Tensor:
    """The sum over all dimensions of 4 (sqrt(1 + ((y - y') / 2)^2) - 1), the pseudo-Huber loss of CDV's code."""
    parts = [
        ((1 + ((one - other) / 2) ** 2).sqrt() - 1).sum(-1) * weight
        for one, other, weight in zip(found, wanted, counted, strict=True)
    ]
    return 4 * (parts[0] + parts[1]).sum()


def _apart(found: Halves, wanted: Halves, counted: Halves) -> Tensor:
    """(sentences,): the distances of both halves, as much as each counts."""
    # A little is added before the root, whose slope at 0 is infinite.
    parts = [
        ((one - other).square().sum(-1) + 1e-12).sqrt() * weight
        for one, other, weight in zip(found, wanted, counted, strict=True)
    ]
    return parts[0] + parts[1]

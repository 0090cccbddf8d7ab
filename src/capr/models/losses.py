"""Losses of rankers and discourse models."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def listwise(scores: Tensor, answers: Tensor, left_out: Tensor | None = None) -> Tensor:
    """Return the cross-entropy of the answering passage against all others (CAPR, equation 1).

    Args:
        scores: (queries, passages).
        answers: (queries,), the position of the passage that answers each query.
        left_out: (queries, passages), true for passages to ignore because they may also answer.
    """
    if left_out is not None:
        scores = scores.masked_fill(left_out, float("-inf"))
    return nn.functional.cross_entropy(scores.float(), answers)


def distillation(scores: Tensor, teacher: Tensor, temperature: float = 1.0) -> Tensor:
    """Return the divergence of a student's distribution over each list from its teacher's.

    Args:
        scores: (queries, passages), the scores of the student.
        teacher: (queries, passages), the scores of the teacher; -inf after the end of a short list.
        temperature: the divisor of the scores. A high one gives weight to the order of low-ranked passages.
    """
    missing = teacher.isinf()
    targets = (teacher.float() / temperature).softmax(-1)
    logs = (scores.float().masked_fill(missing, float("-inf")) / temperature).log_softmax(-1)
    target_logs = (teacher.float() / temperature).log_softmax(-1)
    divergence = torch.where(missing, torch.zeros_like(targets), targets * (target_logs - logs))
    return divergence.sum(-1).mean() * temperature**2


Halves = tuple[Tensor, Tensor]  # an entity tensor and an aspect tensor


def softmax_over(
    vectors: Tensor, labels: Tensor, rows: Tensor, columns: Tensor, shares: Tensor, temperature: float
) -> Tensor:
    """Return the cross-entropy of the labels of each vector against all labels, by cosine.

    Args:
        vectors: (vectors, dimensions).
        labels: (labels, dimensions), normalised.
        rows: (pairs,), the index of a vector.
        columns: (pairs,), the index of a label of this vector.
        shares: (pairs,), the weight of this label among the labels of the vector.
        temperature: the divisor of the cosines.
    """
    cosines = nn.functional.normalize(vectors, dim=-1) @ labels.T  # (vectors, labels)
    logs = (cosines / temperature).log_softmax(-1)
    return -(logs[rows, columns] * shares).sum() / shares.sum().clamp(min=1e-6)


def distances(outputs: Halves, targets: Halves, weights: Halves) -> Tensor:
    """Return the mean over sentences of |e - e'| + |a - a'| (CDV, equation 12).

    Args:
        outputs: (sentences, dimensions) each, the outputs of the network.
        targets: (sentences, dimensions) each, the vectors of the labels.
        weights: (sentences,) each, 0 for a sentence without a label.
    """
    return _weighted_distances(outputs, targets, weights).mean()


def smoothed(outputs: Halves, targets: Halves, weights: Halves) -> Tensor:
    """Return the mean over sentences of sqrt(1 + ((|e - e'| + |a - a'|) / 4)^2) - 1 (CDV, equation 17)."""
    return ((1 + (_weighted_distances(outputs, targets, weights) / 4) ** 2).sqrt() - 1).mean()


def element_wise(outputs: Halves, targets: Halves, weights: Halves) -> Tensor:
    """Return the sum over all dimensions of 4 (sqrt(1 + ((y - y') / 2)^2) - 1), the pseudo-Huber loss of CDV's code."""
    parts = [
        ((1 + ((output - target) / 2) ** 2).sqrt() - 1).sum(-1) * weight
        for output, target, weight in zip(outputs, targets, weights, strict=True)
    ]
    return 4 * (parts[0] + parts[1]).sum()


def _weighted_distances(outputs: Halves, targets: Halves, weights: Halves) -> Tensor:
    """Return the weighted sum of the distances of entity and aspect: (sentences,)."""
    # The constant avoids the infinite slope of the root at 0.
    parts = [
        ((output - target).square().sum(-1) + 1e-12).sqrt() * weight
        for output, target, weight in zip(outputs, targets, weights, strict=True)
    ]
    return parts[0] + parts[1]

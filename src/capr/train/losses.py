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

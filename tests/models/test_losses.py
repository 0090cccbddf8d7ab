"""Losses of rankings against numpy."""

import numpy as np
import pytest
import torch

from capr.models.losses import distillation, listwise

SCORES = np.array([[1.0, 2.0, -1.0, 0.5], [0.0, 3.0, 1.0, -2.0], [5.0, -5.0, 0.1, 0.2]])
ANSWERS = np.array([1, 0, 2])
LEFT_OUT = np.array([[1, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 1]], bool)


def softmax(scores: np.ndarray) -> np.ndarray:
    exponents = np.exp(scores - scores.max())
    return exponents / exponents.sum()


def test_listwise_is_the_cross_entropy_of_the_answer():
    expected = np.mean([-np.log(softmax(row)[answer]) for row, answer in zip(SCORES, ANSWERS, strict=True)])
    assert listwise(torch.tensor(SCORES), torch.tensor(ANSWERS)).item() == pytest.approx(expected, rel=1e-5)


def test_passages_that_are_left_out_do_not_count():
    rows = zip(SCORES, ANSWERS, LEFT_OUT, strict=True)
    expected = np.mean([-np.log(np.exp(row[answer]) / np.exp(row[~out]).sum()) for row, answer, out in rows])
    scores = torch.tensor(SCORES, requires_grad=True)
    actual = listwise(scores, torch.tensor(ANSWERS), torch.tensor(LEFT_OUT))
    actual.backward()
    assert actual.item() == pytest.approx(expected, rel=1e-5)
    assert (scores.grad.numpy()[LEFT_OUT] == 0).all()
    assert (scores.grad.numpy()[~LEFT_OUT] != 0).all()


def divergence(scores: np.ndarray, teacher: np.ndarray, temperature: float) -> float:
    actual = []
    for row, judged in zip(scores, teacher, strict=True):
        finite = np.isfinite(judged)
        expected, has = softmax(judged[finite] / temperature), softmax(row[finite] / temperature)
        actual.append((expected * np.log(expected / has)).sum())
    return float(np.mean(actual)) * temperature**2


@pytest.mark.parametrize("temperature", [1.0, 2.5])
@pytest.mark.parametrize("missing", [False, True])
def test_a_student_is_compared_with_its_teacher_by_their_divergence(temperature, missing):
    teacher = SCORES[:, ::-1].copy()
    if missing:
        teacher[0, 3] = teacher[2, 1] = -np.inf
    scores = torch.tensor(SCORES, requires_grad=True)
    actual = distillation(scores, torch.tensor(teacher), temperature)
    actual.backward()
    assert actual.item() == pytest.approx(divergence(SCORES, teacher, temperature), rel=1e-5)
    assert scores.grad.isfinite().all()
    assert (scores.grad.numpy()[np.isinf(teacher)] == 0).all()


def test_a_student_that_agrees_with_its_teacher_but_for_a_constant_has_nothing_to_learn():
    scores = torch.tensor(SCORES, requires_grad=True)
    actual = distillation(scores, torch.tensor(SCORES + 7))
    actual.backward()
    assert actual.item() == pytest.approx(0, abs=1e-6)
    assert scores.grad.abs().max().item() == pytest.approx(0, abs=1e-6)


def test_losses_have_the_gradient_of_finite_differences(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "float", lambda self: self)
    scores = torch.tensor(SCORES, requires_grad=True)
    answers, left_out = torch.tensor(ANSWERS), torch.tensor(LEFT_OUT)
    teacher = torch.tensor(SCORES[::-1].copy())
    teacher[0, 3] = -torch.inf
    assert torch.autograd.gradcheck(lambda s: listwise(s, answers), (scores,))
    assert torch.autograd.gradcheck(lambda s: listwise(s, answers, left_out), (scores,))
    assert torch.autograd.gradcheck(lambda s: distillation(s, teacher, 2.0), (scores,))

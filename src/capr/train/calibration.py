"""Calibration of a reader: from margins to probabilities, and the minimum confidence of an answer.

References: Platt, Probabilistic Outputs for Support Vector Machines, 1999; Guo et al., On Calibration of Modern Neural
Networks, 2017.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
STEPS = 100
FLATTEST = 1e-3  # the minimum slope, for a reader whose margins say nothing


def fit_calibration(margins: Sequence[float], right: Sequence[bool]) -> tuple[float, float]:
    """Return the temperature and bias that make sigmoid(margin / temperature + bias) the probability of a right answer.

    Newton's method minimises the negative log-likelihood. As in Platt's method, the targets are a little below 1 and
    above 0. Without this, a reader that is always right on a small split would get a confidence of 1.

    Args:
        margins: the score of each answer above the score of no answer.
        right: whether the answer is right.

    Example:
        >>> fit_calibration([-2.0, -1.0, 1.0, 2.0], [False, True, False, True])[0] > 1
        True
    """
    x, y = np.array(margins, float), np.array(right, bool)
    if not len(x):
        return 1.0, 0.0
    positives, negatives = int(y.sum()), int((~y).sum())
    targets = np.where(y, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    scale = max(float(x.std()), 1e-6)
    features = np.stack([x / scale, np.ones(len(x))], 1)  # (margins, 2)
    weights = np.zeros(2)
    value = _loss(features, targets, weights)
    for _ in range(STEPS):
        probabilities = _sigmoid(features @ weights)
        gradient = features.T @ (probabilities - targets)
        curvature = features.T @ (features * (probabilities * (1 - probabilities))[:, None]) + 1e-9 * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        while (next_value := _loss(features, targets, weights - step)) > value and np.abs(step).max() > 1e-9:
            step = step / 2
        if value - next_value < 1e-12:
            break
        weights, value = weights - step, next_value
    if weights[0] / scale < FLATTEST:
        share = float(targets.mean())
        return 1 / FLATTEST, float(np.log(share / (1 - share)))
    return float(scale / weights[0]), float(weights[1])


def _loss(features: Floats, targets: Floats, weights: Floats) -> float:
    """Return the negative log-likelihood."""
    value = features @ weights
    return float((np.logaddexp(0, value) - targets * value).sum())


def _sigmoid(value: Floats) -> Floats:
    probabilities: Floats = np.exp(-np.logaddexp(0, -value))
    return probabilities


def threshold(answerable: Sequence[float], unanswerable: Sequence[float]) -> tuple[float, float, float]:
    """Return the minimum confidence of an answer, and the shares of answered and of refused questions.

    The threshold maximises balanced accuracy: the mean of the share of answerable questions that it answers, and the
    share of unanswerable questions that it refuses. If several ranges of confidence are equally good, it is the middle
    of the highest.

    Args:
        answerable: the confidence of the best paragraph for each answerable question.
        unanswerable: the confidence of the best paragraph for each unanswerable question.

    Example:
        >>> threshold([0.9, 0.75, 0.3, 0.8], [0.1, 0.2, 0.25])
        (0.275, 1.0, 1.0)
    """
    yes, no = np.sort(np.array(answerable, float)), np.sort(np.array(unanswerable, float))
    if not len(yes) or not len(no):
        return 0.5, float((yes >= 0.5).mean()) if len(yes) else 1.0, float((no < 0.5).mean()) if len(no) else 1.0
    borders = np.unique(np.concatenate([[0.0], yes, no, [1.0]]))
    middles = (borders[1:] + borders[:-1]) / 2
    answered = 1 - np.searchsorted(yes, middles) / len(yes)
    refused = np.searchsorted(no, middles) / len(no)
    (best,) = np.nonzero(np.isclose(answered + refused, (answered + refused).max()))
    position = int(best[-1])
    return float(middles[position]), float(answered[position]), float(refused[position])

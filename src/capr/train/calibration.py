"""How sure a reader may be: its margins to probabilities, and the confidence below which there is no answer.

References: Platt, Probabilistic Outputs for Support Vector Machines, 1999; Guo et al., On Calibration of Modern Neural
Networks, 2017.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
STEPS = 100
FLATTEST = 1e-3  # slope, of a reader that knows nothing


def calibrated(margins: Sequence[float], right: Sequence[bool]) -> tuple[float, float]:
    """The temperature and bias for which sigmoid(margin / temperature + bias) is the likeliest share of what is right.

    Fitted by Newton's method to the negative log-likelihood. As in Platt's method, the targets are a little less than
    1 and more than 0, so that a reader that was always right on a small split is not taken to be infinitely sure.

    Args:
        margins: how much likelier a reader finds its answer than none.
        right: whether it is right.

    Example:
        >>> calibrated([-2.0, -1.0, 1.0, 2.0], [False, True, False, True])[0] > 1
        True
    """
    x, y = np.array(margins, float), np.array(right, bool)
    if not len(x):
        return 1.0, 0.0
    many, few = int(y.sum()), int((~y).sum())
    targets = np.where(y, (many + 1) / (many + 2), 1 / (few + 2))
    scale = max(float(x.std()), 1e-6)
    features = np.stack([x / scale, np.ones(len(x))], 1)  # (margins, 2)
    weights = np.zeros(2)
    value = _loss(features, targets, weights)
    for _ in range(STEPS):
        likely = _sigmoid(features @ weights)
        slope = features.T @ (likely - targets)
        bend = features.T @ (features * (likely * (1 - likely))[:, None]) + 1e-9 * np.eye(2)
        step = np.linalg.solve(bend, slope)
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
    """The negative log-likelihood."""
    value = features @ weights
    return float((np.logaddexp(0, value) - targets * value).sum())


def _sigmoid(value: Floats) -> Floats:
    found: Floats = np.exp(-np.logaddexp(0, -value))
    return found


def threshold(answerable: Sequence[float], unanswerable: Sequence[float]) -> tuple[float, float, float]:
    """The confidence from which on to answer: the one with the highest mean of two shares, and the two shares.

    These are the share of questions with an answer that are answered, and the share of those without that are refused:
    balanced accuracy. Of several that are equally good, the highest, and of a range of them its middle.

    Args:
        answerable: of questions with an answer, the confidence of the best paragraph.
        unanswerable: of questions without one.

    Example:
        >>> threshold([0.9, 0.75, 0.3, 0.8], [0.1, 0.2, 0.25])
        (0.275, 1.0, 1.0)
    """
    yes, no = np.sort(np.array(answerable, float)), np.sort(np.array(unanswerable, float))
    if not len(yes) or not len(no):
        return 0.5, float((yes >= 0.5).mean()) if len(yes) else 1.0, float((no < 0.5).mean()) if len(no) else 1.0
    borders = np.unique(np.concatenate([[0.0], yes, no, [1.0]]))
    middles = (borders[1:] + borders[:-1]) / 2
    kept = 1 - np.searchsorted(yes, middles) / len(yes)
    refused = np.searchsorted(no, middles) / len(no)
    (best,) = np.nonzero(np.isclose(kept + refused, (kept + refused).max()))
    place = int(best[-1])
    return float(middles[place]), float(kept[place]), float(refused[place])

"""Confidence on made-up data, where the truth is known."""

import numpy as np
import pytest
from scipy.optimize import minimize

from capr.measures.answers import calibration_error
from capr.train.calibration import fit_calibration, threshold


def made_up(temperature: float, bias: float, count: int = 20_000, seed: int = 0):
    draw = np.random.default_rng(seed)
    margins = draw.normal(0, 6, count)
    return margins, draw.random(count) < 1 / (1 + np.exp(-(margins / temperature + bias)))


@pytest.mark.parametrize(("temperature", "bias"), [(1.0, 0.0), (3.0, -1.5), (0.5, 2.0), (4.0, -1.0)])
def test_temperature_and_bias_are_recovered(temperature, bias):
    margins, right = made_up(temperature, bias)
    actual = fit_calibration(margins, right)
    assert actual[0] == pytest.approx(temperature, rel=0.15)
    assert actual[1] == pytest.approx(bias, abs=0.15)
    held, truth = made_up(temperature, bias, seed=1)
    sure = 1 / (1 + np.exp(-(held / actual[0] + actual[1])))
    assert calibration_error(list(zip(sure, truth, strict=True))) < 0.02
    near = (sure > 0.75) & (sure < 0.85)
    assert truth[near].mean() == pytest.approx(0.8, abs=0.05)


def test_the_result_agrees_with_another_optimiser():
    margins, right = made_up(2.0, 0.7, 300)
    many, few = right.sum(), (~right).sum()
    targets = np.where(right, (many + 1) / (many + 2), 1 / (few + 2))

    def loss(weights):
        value = margins * weights[0] + weights[1]
        return (np.logaddexp(0, value) - targets * value).sum()

    expected = minimize(loss, [1.0, 0.0]).x
    temperature, bias = fit_calibration(margins, right)
    assert (1 / temperature, bias) == (pytest.approx(expected[0], rel=1e-3), pytest.approx(expected[1], abs=1e-3))


@pytest.mark.parametrize("right", [[True] * 6, [False] * 6, [False] * 3 + [True] * 3, [True] * 3 + [False] * 3])
def test_small_and_one_sided_splits_give_numbers(right):
    temperature, bias = fit_calibration([-30.0, -5.0, -1.0, 2.0, 7.0, 40.0], right)
    assert 0 < temperature <= 1000
    assert np.isfinite(bias)


def test_no_margins_give_the_identity():
    assert fit_calibration([], []) == (1.0, 0.0)
    temperature, bias = fit_calibration([3.0] * 4, [True, False] * 2)
    assert 1 / (1 + np.exp(-(3 / temperature + bias))) == pytest.approx(0.5, abs=0.01)


def test_the_threshold_answers_and_refuses_best():
    draw = np.random.default_rng(2)
    yes, no = draw.beta(5, 2, 300), draw.beta(2, 5, 100)
    least, answered, refused = threshold(yes, no)
    assert answered == (yes >= least).mean()
    assert refused == (no < least).mean()
    every = [((yes >= t).mean() + (no < t).mean()) for t in np.linspace(0, 1, 2001)]
    assert answered + refused >= max(every) - 1e-9


def test_a_threshold_of_one_side_is_the_middle():
    assert threshold([0.9, 0.4], []) == (0.5, 0.5, 1.0)
    assert threshold([], [0.9, 0.4]) == (0.5, 1.0, 0.5)
    assert threshold([0.9, 0.8], [0.2, 0.1]) == (0.5, 1.0, 1.0)

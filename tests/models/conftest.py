"""A reference implementation of an LSTM in numpy, for the tests of the networks."""

import numpy as np
import pytest


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def one_way(x, weights, states, bias):
    """(steps, hidden), by the formulas of an LSTM: input, forget, cell and output gate, in torch's order."""
    size = states.shape[1]
    h, c, actual = np.zeros(size), np.zeros(size), []
    for row in x:
        i, f, g, o = np.split(weights @ row + states @ h + bias, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        actual.append(h)
    return np.array(actual)


def both_ways(lstm, x):
    """(steps, 2 hidden): the states of both directions, joined, with the weights of a torch LSTM."""
    w = {name: value.detach().numpy().astype(float) for name, value in lstm.named_parameters()}
    forward = one_way(x, w["weight_ih_l0"], w["weight_hh_l0"], w["bias_ih_l0"] + w["bias_hh_l0"])
    back = "_reverse"
    bias = w["bias_ih_l0" + back] + w["bias_hh_l0" + back]
    backward = one_way(x[::-1], w["weight_ih_l0" + back], w["weight_hh_l0" + back], bias)[::-1]
    return np.concatenate([forward, backward], 1)


@pytest.fixture(scope="session")
def blstm():
    return both_ways

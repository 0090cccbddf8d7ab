"""The spaces of the paper: Bloom codes by hand, and each equation against plain numpy."""

import random

import numpy as np
import pytest
import torch

from capr.models.codes import BITS, CodeNetwork, bloom, bp_mll, murmur3
from capr.runtime.subwords import Subwords
from capr.train.cdv_spaces import Description, _index, _WordReader


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [  # of the reference implementation
        ("", 0, 0),
        ("hello", 0xCBD8A7B341BD9B02, 0x5B1E906A48AE1D19),
        ("hello, world", 0x342FAC623A5EBC8E, 0x4CDCBC079642414D),
        ("The quick brown fox jumps over the lazy dog.", 0xCD99481F9EE902C9, 0x695DA1A38987B6E7),
    ],
)
def test_murmur3(text, first, second):
    assert murmur3(text.encode()) == (first, second)


def test_bloom_code_by_hand():
    h1, h2 = 0xCBD8A7B341BD9B02, 0x5B1E906A48AE1D19  # of "hello"
    expected = {(h1 + i * h2) % 2**64 % 1024 for i in range(5)}
    assert expected == {
        0x302,
        (0x302 + 0x119) % 1024,
        (0x302 + 2 * 0x119) % 1024,
        (0x302 + 3 * 0x119) % 1024,
        (0x302 + 4 * 0x119) % 1024,
    }
    assert set(bloom(["hello"]).nonzero().flatten().tolist()) == expected
    code = bloom(["hello", "world"])
    assert torch.equal(code, torch.maximum(bloom(["hello"]), bloom(["world"])))
    assert bloom([]).sum() == 0
    assert len(code) == BITS


def test_bp_mll_is_the_mean_over_all_pairs():
    outputs = torch.rand(3, 6, generator=torch.Generator().manual_seed(0))
    expected = torch.tensor([[1.0, 0, 0, 1, 0, 0], [0, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 0]])
    total = 0.0
    for o, y in zip(outputs.numpy(), expected.numpy(), strict=True):
        pairs = [np.exp(-(o[k] - o[j])) for k in range(6) for j in range(6) if y[k] and not y[j]]
        total += np.mean(pairs) / 3
    assert bp_mll(outputs, expected).item() == pytest.approx(total, abs=1e-5)


def embedded(model, states):
    """The embedding by the states (words, 2 size) of equation 3: their ends, averaged, or through the dense layer."""
    forward, backward = np.split(states, 2, axis=1)
    if model.dense is None:
        return (forward[-1] + backward[0]) / 2  # equation 4
    joined = np.concatenate([forward[-1], backward[0]])
    return np.tanh(model.dense.weight.detach().numpy() @ joined + model.dense.bias.detach().numpy())


@pytest.mark.parametrize("count", [1, 5])
def test_states_of_equation_3(blstm, count):
    torch.manual_seed(0)
    model = CodeNetwork(4, 3).eval()
    words = torch.randn(1, count, 4)
    np.testing.assert_allclose(model.lstm(words)[0][0].detach().numpy(), blstm(model.lstm, words[0].numpy()), atol=1e-6)


@pytest.mark.parametrize("dense", [True, False])
def test_the_index_of_equation_5(dense, blstm):
    torch.manual_seed(0)
    model = CodeNetwork(4, 3, dense).eval()
    vocabulary = ["gout", "toe", "pain", "uric", "acid"]
    words = Subwords(vocabulary, np.random.default_rng(0).normal(size=(5, 4)), [1] * 5)
    draw = random.Random(0)
    texts = [" ".join(draw.choices(vocabulary, k=draw.randint(1, 4))) for _ in range(150)]  # more than are read at once
    descriptions = [
        Description(text, ("a",), ("gout", "podagra") if number % 3 else ("asthma",))
        for number, text in enumerate(texts)
    ]
    actual = _index(model, descriptions, _WordReader(descriptions, words, "cpu"))
    assert list(actual) == ["asthma", "gout", "podagra"]
    for key, vector in actual.items():
        rows = [
            embedded(model, blstm(model.lstm, np.stack([words.vector(word) for word in description.text.split()])))
            for description in descriptions
            if key in description.keys
        ]
        assert len(rows) == (50 if key == "asthma" else 100)
        mean = np.mean(rows, 0)
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-5)


@pytest.mark.parametrize("dense", [True, False])
def test_embedding_is_made_of_the_end_states(dense, blstm):
    torch.manual_seed(0)
    model = CodeNetwork(4, 3, dense).eval()
    words = torch.randn(1, 5, 4)
    expected = embedded(model, blstm(model.lstm, words[0].numpy()))
    np.testing.assert_allclose(model.embedding(words)[0].detach().numpy(), expected, atol=1e-6)
    padded = torch.cat([words, torch.randn(1, 3, 4)], 1)
    np.testing.assert_allclose(model.embedding(padded, torch.tensor([5]))[0].detach().numpy(), expected, atol=1e-6)
    assert model(words).shape == (1, BITS)

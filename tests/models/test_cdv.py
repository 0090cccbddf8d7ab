"""The discourse model: each equation against plain numpy, and documents of any length."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from capr.models.cdv import CODE, OURS, PAPER, Cdv, CdvForExport, Sizes, present
from capr.models.losses import distances, element_wise, smoothed, softmax_over

SMALL = Sizes(hidden=5, delta=6, bounded=True, direct=False)


def dense(layer, x):
    return x @ layer.weight.detach().numpy().T.astype(float) + layer.bias.detach().numpy()


def sentences(count, size=4, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(count, size)).astype(np.float32))


def test_equations_11_and_12(blstm):
    torch.manual_seed(0)
    model, x = Cdv(4, 3, 2, SMALL).eval(), sentences(7)
    delta = np.tanh(dense(model.delta, blstm(model.reader.lstm, x.numpy())))
    entity, aspect = (half[0].detach().numpy() for half in model(x[None]))
    np.testing.assert_allclose(entity, np.tanh(dense(model.entity, delta)), atol=1e-5)
    np.testing.assert_allclose(aspect, np.tanh(dense(model.aspect, delta)), atol=1e-5)


def test_batch_normalisation_of_the_paper(blstm):
    torch.manual_seed(0)
    model = Cdv(4, 3, 2, replace(SMALL, normalised=True)).train()
    with torch.no_grad():
        for weight in (model.norm.weight, model.norm.bias):
            weight.copy_(torch.rand(6))
    scale, shift = model.norm.weight.detach().numpy(), model.norm.bias.detach().numpy()
    documents = sentences(3), sentences(7, seed=1)
    rows = [dense(model.delta, blstm(model.reader.lstm, document.numpy())) for document in documents]
    every = np.concatenate(rows)  # of both documents, padding left out
    mean, spread = every.mean(0), every.var(0)
    seen = 0.9 * np.zeros(6) + 0.1 * mean, 0.9 * np.ones(6) + 0.1 * every.var(0, ddof=1)

    def halves_of(row, mean, spread):
        delta = np.tanh((row - mean) / np.sqrt(spread + 1e-5) * scale + shift)
        return np.tanh(dense(model.entity, delta)), np.tanh(dense(model.aspect, delta))

    padded = torch.nn.utils.rnn.pad_sequence(documents, batch_first=True)
    learning = model(padded, torch.tensor([3, 7]))
    later = model.eval()(documents[1][None])
    for actual, expected in zip(learning, halves_of(rows[0], mean, spread), strict=True):
        np.testing.assert_allclose(actual[0, :3].detach().numpy(), expected, atol=1e-5)
    for actual, expected in zip(later, halves_of(rows[1], *seen), strict=True):
        np.testing.assert_allclose(actual[0].detach().numpy(), expected, atol=1e-5)


def test_branches_of_the_code(blstm):
    torch.manual_seed(0)
    model, x = Cdv(4, 3, 2, Sizes(5, 6, branch=4, bounded=True, direct=False)).eval(), sentences(3)
    delta = np.tanh(dense(model.delta, blstm(model.reader.lstm, x.numpy())))
    branch = np.tanh(dense(model.entity[0], delta))
    branch = branch / np.linalg.norm(branch, axis=1, keepdims=True)
    np.testing.assert_allclose(
        model(x[None])[0][0].detach().numpy(), np.tanh(dense(model.entity[3], branch)), atol=1e-5
    )


def test_words_have_linear_paths_to_the_outputs(blstm):
    torch.manual_seed(0)
    model, x = Cdv(4, 3, 2, Sizes(5, 6)).eval(), sentences(3)
    model.standardise(x)
    read = ((x - x.mean(0)) / x.std(0)).numpy()
    delta = np.tanh(dense(model.delta, blstm(model.reader.lstm, read)))
    linear = read @ model.direct.weight.detach().numpy().T
    linear = linear + read[0] @ model.opening.weight.detach().numpy().T
    linear = linear + read.mean(0) @ model.whole.weight.detach().numpy().T
    entity, aspect = (half[0].detach().numpy() for half in model(x[None]))
    np.testing.assert_allclose(entity, dense(model.entity, delta) + linear[:, :3], atol=1e-5)
    np.testing.assert_allclose(aspect, dense(model.aspect, delta) + linear[:, 3:], atol=1e-5)


def test_a_linear_path_can_begin_as_a_projection():
    model, x = Cdv(4, 2, 2, Sizes(5, 6)), sentences(6)
    model.standardise(x)
    ways = sentences(4, 2, 1), sentences(4, 2, 2)
    model.begin_with(*ways)
    linear = model.direct((x - model.centre) / model.spread).detach()
    for half, way in zip(linear.split(2, 1), ways, strict=True):
        expected = (x - x.mean(0)) @ way
        cosines = torch.nn.functional.cosine_similarity(half, expected)
        assert torch.allclose(cosines, torch.ones(6), atol=1e-5)
    for path in (model.opening, model.whole):
        assert torch.equal(path.weight[:2], model.direct.weight[:2])
        assert not path.weight[2:].any()


def test_published_sizes():
    def parameters(sizes, outputs=128):
        with torch.device("meta"):
            model = Cdv(307, outputs, outputs, sizes)
        return {name: tuple(value.shape) for name, value in model.named_parameters()}

    paper, code = parameters(PAPER), parameters(CODE)
    assert paper["delta.weight"] == (256, 1024)
    assert paper["entity.weight"] == (128, 256)
    assert code["delta.weight"] == (512, 2048)
    assert code["aspect.0.weight"] == (*code["aspect.3.weight"][:1], 512)
    assert parameters(OURS)["reader.lstm.weight_hh_l0"] == (1024, 256)


@pytest.mark.parametrize(
    "sizes", [OURS, PAPER, CODE, Sizes(8, 8, over="transformer")], ids=["ours", "paper", "code", "transformer"]
)
def test_padding_changes_nothing(sizes):
    torch.manual_seed(0)
    model = Cdv(4, 3, 2, sizes).eval()
    short, long = sentences(1), sentences(6, seed=1)
    padded = torch.nn.utils.rnn.pad_sequence([short, long], batch_first=True)
    entity, aspect = model(padded, torch.tensor([1, 6]))
    for row, document in enumerate((short, long)):
        alone = model(document[None])
        assert torch.allclose(entity[row, : len(document)], alone[0][0], atol=1e-5)
        assert torch.allclose(aspect[row, : len(document)], alone[1][0], atol=1e-5)


@pytest.mark.parametrize("lengths", [None, torch.tensor([1])], ids=["as long", "padded"])
def test_a_single_sentence_is_normalised_by_the_running_statistics(lengths):
    torch.manual_seed(0)
    model = Cdv(4, 3, 2, Sizes(5, 6, bounded=True, direct=False, normalised=True))
    model(sentences(6)[None])
    seen = {name: value.clone() for name, value in model.norm.named_buffers()}
    document = sentences(1 if lengths is None else 3, seed=1)[None]
    entity, aspect = model(document, lengths)
    (entity.sum() + aspect.sum()).backward()
    assert torch.isfinite(model.delta.weight.grad).all()
    assert all(torch.equal(value, seen[name]) for name, value in model.norm.named_buffers())
    assert torch.allclose(entity[0, 0], model.eval()(document[:, :1])[0][0, 0], atol=1e-6)


@pytest.mark.parametrize("count", [1, 5000])
def test_documents_of_any_length(count):
    vectors = CdvForExport(Cdv(4, 3, 2, SMALL).eval())(sentences(count)).detach()
    assert vectors.shape == (count, 5)
    for half in (vectors[:, :3], vectors[:, 3:]):
        assert torch.allclose(half.norm(dim=1), torch.full((count,), 0.5**0.5), atol=1e-5)


def test_present():
    assert present(torch.tensor([1, 3]), 3).tolist() == [[True, False, False], [True, True, True]]


def halves(seed):
    return sentences(4, 3, seed), sentences(4, 2, seed + 1)


def test_equation_12_and_17():
    actual, expected = halves(1), halves(3)
    counted = torch.ones(4), torch.tensor([1.0, 0, 1, 0.1])
    apart = [
        np.linalg.norm((f - w).numpy(), axis=1) * c.numpy() for f, w, c in zip(actual, expected, counted, strict=True)
    ]
    total = apart[0] + apart[1]
    assert distances(actual, expected, counted).item() == pytest.approx(total.mean(), abs=1e-5)
    assert smoothed(actual, expected, counted).item() == pytest.approx(
        (np.sqrt(1 + (total / 4) ** 2) - 1).mean(), abs=1e-5
    )


def test_the_loss_of_the_code():
    actual, expected = halves(1), halves(3)
    counted = torch.ones(4), torch.zeros(4)
    gap = (actual[0] - expected[0]).numpy()
    assert element_wise(actual, expected, counted).item() == pytest.approx(
        (4 * (np.sqrt(1 + (gap / 2) ** 2) - 1)).sum(), abs=1e-4
    )


def test_a_distance_of_zero_can_be_learned_from():
    actual = sentences(2, 3).requires_grad_(), sentences(2, 2).requires_grad_()
    distances(actual, tuple(half.detach().clone() for half in actual), (torch.ones(2), torch.ones(2))).backward()
    assert torch.isfinite(actual[0].grad).all()


def test_softmax_over_labels():
    vectors, labels = sentences(3, 4), torch.nn.functional.normalize(sentences(5, 4, 1))
    rows, columns, shares = torch.tensor([0, 0, 2]), torch.tensor([1, 4, 2]), torch.tensor([0.5, 0.5, 1.0])
    v = vectors.numpy() / np.linalg.norm(vectors.numpy(), axis=1, keepdims=True)
    logits = v @ labels.numpy().T / 0.1
    likely = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    expected = -(0.5 * likely[0, 1] + 0.5 * likely[0, 4] + likely[2, 2]) / 2
    assert softmax_over(vectors, labels, rows, columns, shares, 0.1).item() == pytest.approx(expected, abs=1e-4)

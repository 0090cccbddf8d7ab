"""Torch weights from models that were exported in 8 bits."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel

from capr.documents import CaprError
from capr.models import from_onnx
from capr.models.bases import load_classifier, load_encoder
from capr.models.bi import Bi
from capr.models.cross import Cross
from capr.models.family import Schedule
from capr.models.poly import Poly
from capr.models.ranking import RankingObjective
from capr.runtime.kinds import load_model
from capr.train.finish import CardFacts, finish
from capr.train.ranking import TrainedRanker, train

READING = {"negatives": 1, "pieces": 32, "views": (("text", 1.0),), "short": 0.0}
SCHEDULE = Schedule(epochs=1, batch=8, learning_rate=1e-3, device="cpu")
RECIPES = {
    "shared": {"kind": "bi", "markers": True},
    "cross": {"kind": "cross"},
    "separate": {"kind": "bi", "shared": False},
    "poly": {"kind": "poly"},
}
KINDS = {"bi": Bi, "poly": Poly, "cross": Cross}


def family(kind, base, **settings):
    """A family with the settings of these tests."""
    return KINDS[kind](base=str(base), **{**READING, **settings})


def stirred(objective: RankingObjective) -> RankingObjective:
    """Give all weights different values, as training does. Many weights of a new model are equal."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in objective.model.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return objective


def exported(objective: RankingObjective, world, out: Path) -> tuple[Path, RankingObjective]:
    """The folder of a trained model, without the torch weights."""
    lists = list(world.lists(4, 4))
    finish(TrainedRanker(objective, world, lists), out, CardFacts("stirred", "ranker", {}, "", {}, {}))
    shutil.rmtree(out / "torch")
    return out, objective


@pytest.fixture(scope="module")
def folders(bert, world, tmp_path_factory):
    actual = {}
    for name, options in RECIPES.items():
        objective = stirred(family(base=bert, **options).objective(world, "cpu"))
        actual[name] = exported(objective, world, tmp_path_factory.mktemp(name))
    return actual


def as_near_as_8_bits(actual: torch.Tensor, expected: torch.Tensor) -> None:
    """Each weight differs by at most half a step. There are 255 steps between the minimum and the maximum."""
    low, high = min(0.0, float(expected.min())), max(0.0, float(expected.max()))
    step = 2 * max(-low, high) / 254
    np.testing.assert_allclose(actual.numpy(), expected.numpy(), atol=0.51 * step)


def test_the_weights_of_an_encoder_come_back(folders):
    folder, objective = folders["shared"]
    expected = objective.model.passage_encoder.state_dict()
    actual = load_encoder(str(folder)).state_dict()
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        as_near_as_8_bits(actual[name], value)
    assert not torch.equal(
        actual["encoder.layer.0.attention.self.key.weight"], actual["encoder.layer.1.attention.self.key.weight"]
    )


def test_the_weights_of_a_ranker_come_back_with_pooler_and_head(folders):
    folder, objective = folders["cross"]
    expected = objective.model.classifier.state_dict()
    assert {"bert.pooler.dense.weight", "bert.pooler.dense.bias", "classifier.weight", "classifier.bias"} <= {*expected}
    read = from_onnx.weights(folder / "model.onnx")
    assert read.keys() >= expected.keys()
    actual = load_classifier(str(folder)).state_dict()
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        as_near_as_8_bits(actual[name], value)
        as_near_as_8_bits(read[name], value)


def test_products_come_back_by_their_own_scales(folders):
    """Each column of a matrix has its own scale, which is more exact than one scale for all."""
    folder, objective = folders["cross"]
    name = "bert.encoder.layer.1.intermediate.dense.weight"
    expected = objective.model.classifier.state_dict()[name]  # (out, in)
    actual = load_classifier(str(folder)).state_dict()[name]
    for row, own in zip(actual, expected, strict=True):
        as_near_as_8_bits(row, own)


@pytest.mark.parametrize("name", ["shared", "cross"])
def test_restored_weights_score_like_the_exported_ones(folders, world, name):
    folder, _ = folders[name]
    objective = family(base=folder, **RECIPES[name]).objective(world, "cpu")
    objective.model.eval()
    texts = list(range(12))
    (scores,) = objective.score_lists(world, [("treatment of gout", texts, set())], "text")
    expected = load_model(folder).scores("treatment of gout", [world.passages[i].text for i in texts])
    assert np.corrcoef(scores, expected)[0, 1] > 0.95  # ONNX also rounds the inputs of each product


@pytest.mark.parametrize("name", ["separate", "poly"])
def test_missing_weights_raise_an_error(folders, world, name):
    """The weights of a query network or of an attention are either restored or refused."""
    folder, before = folders[name]
    try:
        after = family(base=folder, **RECIPES[name]).objective(world, "cpu")
    except CaprError:
        return
    actual = after.model.state_dict()
    for key, value in before.model.state_dict().items():
        if "pooler" not in key:
            as_near_as_8_bits(actual[key], value)


@pytest.mark.parametrize("name", ["shared", "cross"])
def test_a_result_without_its_torch_folder_is_a_base_again(world, bert, tmp_path, name):
    first, second = tmp_path / "first", tmp_path / "second"
    mine = family(base=bert, validation=0.3, **RECIPES[name])
    train(world, mine, SCHEDULE, first)
    trained = (load_encoder if name == "shared" else load_classifier)(str(first / "torch")).state_dict()
    shutil.rmtree(first / "torch")
    again = replace(mine, base=str(first))
    model = again.objective(world, "cpu").model
    actual = (model.passage_encoder if name == "shared" else model.classifier).state_dict()
    assert actual.keys() == trained.keys()
    for key, value in trained.items():
        as_near_as_8_bits(actual[key], value)
    scores = train(world, again, SCHEDULE, second)
    assert scores["first as torch, 32 bits"] == 1
    assert (second / "torch" / "model.safetensors").is_file()


@pytest.mark.parametrize("kind", ["encoder", "ranker"])
def test_a_shipped_model_is_a_base_by_its_name(folders, world, tmp_path, monkeypatch, kind):
    name = {"encoder": "shared", "ranker": "cross"}[kind]
    folder, before = folders[name]
    shutil.copytree(folder, tmp_path / kind)
    monkeypatch.setenv("CAPR_WEIGHTS", str(tmp_path))
    after = family(base=kind, **RECIPES[name]).objective(world, "cpu").model.state_dict()
    for key, value in before.model.state_dict().items():
        as_near_as_8_bits(after[key], value)


def test_weights_for_torch_are_taken_where_they_are(bert, folders, tmp_path):
    folder = shutil.copytree(bert, tmp_path / "base")
    shutil.copy(folders["shared"][0] / "model.onnx", folder / "model.onnx")
    assert not from_onnx.is_exported(folder)
    name = "embeddings.word_embeddings.weight"
    expected = AutoModel.from_pretrained(bert).state_dict()[name]
    assert torch.equal(load_encoder(str(folder)).state_dict()[name], expected)
    torch.save(AutoModel.from_pretrained(bert).state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert not from_onnx.is_exported(folder)


@pytest.mark.parametrize("other", ["encoder.layer.1.attention.self.key", "pooler.dense"])
def test_weights_with_equal_biases_are_not_confused(bert, world, tmp_path, other):
    """An export stores equal tensors only once, so a bias cannot identify its product."""
    objective = stirred(family("cross", bert).objective(world, "cpu"))
    with torch.no_grad():
        for name in ("encoder.layer.0.attention.self.key", other):
            objective.model.classifier.bert.get_submodule(name).bias.zero_()
    folder, _ = exported(objective, world, tmp_path)
    try:
        actual = load_classifier(str(folder)).state_dict()
    except CaprError:
        return
    for name, value in objective.model.classifier.state_dict().items():
        as_near_as_8_bits(actual[name], value)


# Broken networks


def refused(folder, load=load_encoder):
    with pytest.raises(CaprError) as caught:
        load(str(folder))
    assert str(folder) in str(caught.value)
    assert "Fix: " in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("content", [b"", b"garbage", bytes(1000)])
def test_a_broken_network_raises_an_error(folders, tmp_path, content):
    folder = shutil.copytree(folders["shared"][0], tmp_path / "base")
    (folder / "model.onnx").write_bytes(content)
    refused(folder)


def test_an_incomplete_network_raises_an_error(folders, tmp_path):
    folder = shutil.copytree(folders["shared"][0], tmp_path / "base")
    whole = (folder / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(whole[: len(whole) // 2])
    refused(folder)


def test_a_missing_network_raises_an_error(folders, tmp_path):
    folder = shutil.copytree(folders["shared"][0], tmp_path / "base")
    (folder / "model.onnx").unlink()
    refused(folder)


@pytest.mark.parametrize(
    ("named", "missing"), [("classifier.classifier", "classifier.weight"), ("pooler", "bert.pooler.dense.weight")]
)
def test_a_weight_that_is_missing_is_named(folders, tmp_path, named, missing):
    import onnx

    folder = shutil.copytree(folders["cross"][0], tmp_path / "base")
    network = onnx.load(folder / "model.onnx")
    for tensor in network.graph.initializer:
        tensor.name = tensor.name.replace(named, "other")
    for node in network.graph.node:
        node.input[:] = [name.replace(named, "other") for name in node.input]
    onnx.save(network, folder / "model.onnx")
    assert f"has no {missing}" in refused(folder, load_classifier)


def test_a_network_of_another_size_raises_an_error(folders, new_base, tmp_path):
    folder = shutil.copytree(folders["shared"][0], tmp_path / "base")
    shutil.copy(new_base(tmp_path / "wide", hidden_size=48) / "config.json", folder / "config.json")
    refused(folder)


# Training without ONNX


def test_training_without_onnx_leaves_a_base_and_a_teacher(world, bert, tmp_path):
    mine = family("cross", bert, validation=0.3)
    scores = train(world, mine, SCHEDULE, tmp_path / "first", onnx=False)
    assert set(scores) == {"R@1", "R@5"}
    assert not list((tmp_path / "first").rglob("*.onnx"))
    going_on = replace(mine, base=str(tmp_path / "first"), teachers=(str(tmp_path / "first"),))
    actual = going_on.objective(world, "cpu")
    expected = load_classifier(str(tmp_path / "first" / "torch")).state_dict()
    for model in (actual, *actual.teachers):
        state = model.model.classifier.state_dict()
        assert all(torch.equal(state[key], value) for key, value in expected.items())
    train(world, going_on, SCHEDULE, tmp_path / "second", onnx=False)


def test_training_without_onnx_leaves_none_of_another_model(world, bert, tmp_path):
    mine = family("cross", bert, validation=0.3)
    (tmp_path / "model.onnx").write_bytes(b"of a model that was trained here before")
    train(world, mine, SCHEDULE, tmp_path, onnx=False)
    assert not list(tmp_path.glob("*.onnx"))

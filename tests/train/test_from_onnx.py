"""Torch weights back out of what was exported in 8 bits."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel

from capr.documents import CaprError
from capr.search.models import load_model
from capr.train import from_onnx, retrieval
from capr.train.bases import load_classifier, load_encoder
from capr.train.loop import Schedule
from capr.train.objectives import Reading
from capr.train.retrieval import Recipe, train

READING = Reading(negatives=1, pieces=32)
SCHEDULE = Schedule(epochs=1, batch=8, learning_rate=1e-3, device="cpu")
RECIPES = {
    "shared": {"kind": "bi", "markers": True},
    "cross": {"kind": "cross"},
    "separate": {"kind": "bi", "shared": False},
    "poly": {"kind": "poly"},
}


def stirred(objective: retrieval.Objective) -> retrieval.Objective:
    """Gives every weight values of its own, as training does; a new model has many that are alike."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in objective.model.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return objective


def exported(objective: retrieval.Objective, recipe: Recipe, out: Path) -> tuple[Path, retrieval.Objective]:
    """The folder that training leaves, without the weights for torch."""
    objective.reader.tokenizer.save(str(out / "tokenizer.json"))
    retrieval.keep(objective, recipe, out)
    retrieval.write_manifest(objective, recipe, out)
    retrieval.export_networks(objective, recipe, out)
    shutil.rmtree(out / "torch")
    return out, objective


@pytest.fixture(scope="module")
def folders(bert, world, tmp_path_factory):
    found = {}
    for name, options in RECIPES.items():
        recipe = Recipe(base=str(bert), **options)
        objective = stirred(retrieval.build(world, recipe, READING, "cpu"))
        found[name] = exported(objective, recipe, tmp_path_factory.mktemp(name))
    return found


def as_near_as_8_bits(found: torch.Tensor, wanted: torch.Tensor) -> None:
    """Each number within half a step of the 255 between the least and the greatest."""
    low, high = min(0.0, float(wanted.min())), max(0.0, float(wanted.max()))
    step = 2 * max(-low, high) / 254
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), atol=0.51 * step)


def test_the_weights_of_an_encoder_come_back(folders):
    folder, objective = folders["shared"]
    wanted = objective.model.passage_encoder.state_dict()
    found = load_encoder(str(folder)).state_dict()
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        as_near_as_8_bits(found[name], value)
    assert not torch.equal(found["encoder.layer.0.attention.self.key.weight"],
                           found["encoder.layer.1.attention.self.key.weight"])  # fmt: skip


def test_the_weights_of_a_ranker_come_back_with_pooler_and_head(folders):
    folder, objective = folders["cross"]
    wanted = objective.model.classifier.state_dict()
    assert {"bert.pooler.dense.weight", "bert.pooler.dense.bias", "classifier.weight", "classifier.bias"} <= {*wanted}
    read = from_onnx.weights(folder / "model.onnx")
    assert read.keys() >= wanted.keys()
    found = load_classifier(str(folder)).state_dict()
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        as_near_as_8_bits(found[name], value)
        as_near_as_8_bits(read[name], value)


def test_products_come_back_by_their_own_scales(folders):
    """Each column of a product has a scale of its own, which is nearer than one for all."""
    folder, objective = folders["cross"]
    name = "bert.encoder.layer.1.intermediate.dense.weight"
    wanted = objective.model.classifier.state_dict()[name]  # (out, in)
    found = load_classifier(str(folder)).state_dict()[name]
    for row, own in zip(found, wanted, strict=True):
        as_near_as_8_bits(row, own)


@pytest.mark.parametrize("name", ["shared", "cross"])
def test_what_came_back_scores_as_what_was_exported(folders, world, name):
    folder, _ = folders[name]
    recipe = Recipe(base=str(folder), **RECIPES[name])
    objective = retrieval.build(world, recipe, READING, "cpu")
    objective.model.eval()
    texts = list(range(12))
    (scores,) = objective.ranked(world, [("treatment of gout", texts, set())], "text")
    wanted = load_model(folder).scores("treatment of gout", [world.passages[i].text for i in texts])
    assert np.corrcoef(scores, wanted)[0, 1] > 0.95  # ONNX rounds also what goes into each product


@pytest.mark.parametrize("name", ["separate", "poly"])
def test_no_trained_part_is_lost_without_a_word(folders, world, name):
    """What an ONNX network of queries or an attention has learned either comes back or is refused."""
    folder, before = folders[name]
    try:
        after = retrieval.build(world, Recipe(base=str(folder), **RECIPES[name]), READING, "cpu")
    except CaprError:
        return
    found = after.model.state_dict()
    for key, value in before.model.state_dict().items():
        if "pooler" not in key:
            as_near_as_8_bits(found[key], value)


@pytest.mark.parametrize("name", ["shared", "cross"])
def test_a_result_without_its_torch_folder_is_a_base_again(world, bert, tmp_path, name):
    first, second = tmp_path / "first", tmp_path / "second"
    recipe = Recipe(base=str(bert), validation=0.3, **RECIPES[name])
    train(world, recipe, READING, SCHEDULE, first)
    trained = (load_encoder if name == "shared" else load_classifier)(str(first / "torch")).state_dict()
    shutil.rmtree(first / "torch")
    again = replace(recipe, base=str(first))
    model = retrieval.build(world, again, READING, "cpu").model
    found = (model.passage_encoder if name == "shared" else model.classifier).state_dict()
    assert found.keys() == trained.keys()
    for key, value in trained.items():
        as_near_as_8_bits(found[key], value)
    scores = train(world, again, READING, SCHEDULE, second)
    assert scores["first as torch, 32 bits"] == 1
    assert (second / "torch" / "model.safetensors").is_file()


@pytest.mark.parametrize("kind", ["encoder", "ranker"])
def test_what_ships_is_a_base_by_its_name(folders, world, tmp_path, monkeypatch, kind):
    name = {"encoder": "shared", "ranker": "cross"}[kind]
    folder, before = folders[name]
    shutil.copytree(folder, tmp_path / kind)
    monkeypatch.setenv("CAPR_WEIGHTS", str(tmp_path))
    after = retrieval.build(world, Recipe(base=kind, **RECIPES[name]), READING, "cpu").model.state_dict()
    for key, value in before.model.state_dict().items():
        as_near_as_8_bits(after[key], value)


def test_weights_for_torch_are_taken_where_they_are(bert, folders, tmp_path):
    folder = shutil.copytree(bert, tmp_path / "base")
    shutil.copy(folders["shared"][0] / "model.onnx", folder / "model.onnx")
    assert not from_onnx.is_exported(folder)
    name = "embeddings.word_embeddings.weight"
    wanted = AutoModel.from_pretrained(bert).state_dict()[name]
    assert torch.equal(load_encoder(str(folder)).state_dict()[name], wanted)
    torch.save(AutoModel.from_pretrained(bert).state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert not from_onnx.is_exported(folder)


@pytest.mark.parametrize("other", ["encoder.layer.1.attention.self.key", "pooler.dense"])
def test_weights_whose_biases_are_alike_are_not_confused(bert, world, tmp_path, other):
    """Of tensors that are equal, an export keeps one, so that a product cannot be known by its bias."""
    recipe = Recipe(base=str(bert), **RECIPES["cross"])
    objective = stirred(retrieval.build(world, recipe, READING, "cpu"))
    with torch.no_grad():
        for name in ("encoder.layer.0.attention.self.key", other):
            objective.model.classifier.bert.get_submodule(name).bias.zero_()
    folder, _ = exported(objective, recipe, tmp_path)
    try:
        found = load_classifier(str(folder)).state_dict()
    except CaprError:
        return
    for name, value in objective.model.classifier.state_dict().items():
        as_near_as_8_bits(found[name], value)


# --- what is broken ---


def refused(folder, load=load_encoder):
    with pytest.raises(CaprError) as caught:
        load(str(folder))
    assert str(folder) in str(caught.value)
    assert "Fix: " in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("content", [b"", b"garbage", bytes(1000)])
def test_a_broken_network_is_told(folders, tmp_path, content):
    folder = shutil.copytree(folders["shared"][0], tmp_path / "base")
    (folder / "model.onnx").write_bytes(content)
    refused(folder)


def test_half_a_network_is_told(folders, tmp_path):
    folder = shutil.copytree(folders["shared"][0], tmp_path / "base")
    whole = (folder / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(whole[: len(whole) // 2])
    refused(folder)


def test_a_missing_network_is_told(folders, tmp_path):
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


def test_the_network_of_another_size_is_told(folders, new_base, tmp_path):
    folder = shutil.copytree(folders["shared"][0], tmp_path / "base")
    shutil.copy(new_base(tmp_path / "wide", hidden_size=48) / "config.json", folder / "config.json")
    refused(folder)


# --- without ONNX ---


def test_training_without_onnx_leaves_a_base_and_a_teacher(world, bert, tmp_path):
    recipe = Recipe("cross", str(bert), validation=0.3)
    scores = train(world, recipe, READING, SCHEDULE, tmp_path / "first", onnx=False)
    assert set(scores) == {"R@1", "R@5"}
    assert not list((tmp_path / "first").rglob("*.onnx"))
    going_on = replace(recipe, base=str(tmp_path / "first"), teachers=(str(tmp_path / "first"),))
    found = retrieval.build(world, going_on, READING, "cpu")
    wanted = load_classifier(str(tmp_path / "first" / "torch")).state_dict()
    for model in (found, *found.teachers):
        state = model.model.classifier.state_dict()
        assert all(torch.equal(state[key], value) for key, value in wanted.items())
    train(world, going_on, READING, SCHEDULE, tmp_path / "second", onnx=False)


def test_training_without_onnx_leaves_none_of_another_model(world, bert, tmp_path):
    recipe = Recipe("cross", str(bert), validation=0.3)
    (tmp_path / "model.onnx").write_bytes(b"of a model that was trained here before")
    train(world, recipe, READING, SCHEDULE, tmp_path, onnx=False)
    assert not list(tmp_path.glob("*.onnx"))

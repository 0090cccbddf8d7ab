"""From pairs to a folder that searches."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from capr.documents import CaprError
from capr.index import OnnxEncoder
from capr.search.models import load_model
from capr.search.rerank import OnnxPoly
from capr.train import card, retrieval
from capr.train.bases import MARKERS, load_encoder
from capr.train.export import Exported
from capr.train.loop import CHECKPOINT, Schedule
from capr.train.objectives import Reading, validated
from capr.train.pairs import Draw, Pairs, Text
from capr.train.retrieval import Recipe, train

SCHEDULE = Schedule(epochs=2, batch=8, learning_rate=1e-3, device="cpu")
READING = Reading(negatives=1, pieces=32, views=(("text", 2.0), ("title", 1.0)))
RECIPES = {
    "shared": {"kind": "bi", "markers": True, "dimensions": (32, 16)},
    "separate": {"kind": "bi", "shared": False, "pooling": "mean"},
    "poly": {"kind": "poly", "similarity": "dot", "temperature": 1.0, "scaled": True},
    "codes": {"kind": "poly", "similarity": "cosine", "project": False, "scaled": True, "codes": 3},
    "cross": {"kind": "cross", "layers": 1},
}
QUERIES = ["What are the symptoms of gout?", "treatment of rabies", ""]


@pytest.fixture(scope="module")
def trained(world, bert, tmp_path_factory):
    """Each recipe, trained: its folder, the objective that was exported, and its scores."""
    found = {}

    def recipe_of(name: str):
        if name not in found:
            folder = tmp_path_factory.mktemp(name)
            recipe = Recipe(base=str(bert), validation=0.3, name=f"tiny {name}", licence="CC0-1.0", **RECIPES[name])
            built = []
            with pytest.MonkeyPatch.context() as patch:
                make = retrieval.build
                patch.setattr(retrieval, "build", lambda *given: built.append(make(*given)) or built[0])
                longer = replace(SCHEDULE, epochs=12, learning_rate=2e-3)
                # in 8 bits, passages have to be far apart
                schedule = SCHEDULE if name in ("shared", "cross") else longer
                scores = train(world, recipe, READING, schedule, folder)
            found[name] = folder, built[0], scores
        return found[name]

    return recipe_of


@pytest.mark.parametrize("name", RECIPES)
def test_a_folder_has_all_that_a_program_needs(trained, name):
    folder, _, scores = trained(name)
    wanted = {"model.onnx", "model.fp32.onnx", "tokenizer.json", "manifest.json", "config.json", "torch"}
    wanted |= {"README.md", "training.json"}
    if name in ("separate", "poly", "codes"):
        wanted |= {"query.onnx", "query.fp32.onnx"}
    if name == "poly":
        wanted |= {"projection.npy"}
    assert {path.name for path in folder.iterdir()} == wanted
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {
        path.name for path in (folder / "torch").iterdir()
    }
    assert scores["first as torch, 32 bits"] == 1
    assert scores["first as torch, 8 bits"] > 0.5
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["name"] == f"tiny {name}"
    assert manifest["pieces"] == 32
    assert manifest["kind"] == {"bi": "encoder", "poly": "poly", "cross": "ranker"}[RECIPES[name]["kind"]]
    if name != "cross":
        assert manifest["dimensions"] == 32
        assert manifest["pooling"] == RECIPES[name].get("pooling", "cls")
        assert (manifest["query"], manifest["passage"]) == (MARKERS if name == "shared" else ("", ""))


@pytest.mark.parametrize("name", RECIPES)
def test_a_card_names_data_licence_settings_scores_and_revision(trained, name):
    folder, _, scores = trained(name)
    said = (folder / "README.md").read_text()
    facts = json.loads((folder / "training.json").read_text())
    assert said.startswith(f"# tiny {name}\n")
    assert card.revision() in said
    assert facts["revision"] == card.revision()
    assert "Licence of the training data: CC0-1.0." in said
    assert (facts["data"]["documents"], facts["data"]["passages"], facts["data"]["draws"]) == (24, 48, 48)
    assert "| passages | 48 |" in said
    assert f"| learning_rate | {facts['settings']['learning_rate']} |" in said
    assert facts["settings"]["negatives"] == 1
    assert facts["settings"]["seed"] == 1
    assert facts["scores"] == scores
    for measure in scores:
        assert f"| {measure} | " in said
    assert str(folder.parent) not in said


@pytest.mark.parametrize("name", RECIPES)
def test_the_exported_model_scores_like_torch(trained, world, name):
    folder, objective, _ = trained(name)
    texts = [text.view("text") for text in world.passages[:20]] + ["gout", ""]
    pairs = Pairs([Text("d", "", "", text) for text in texts], [])
    lists = [(query, list(range(len(texts))), set()) for query in QUERIES]
    with torch.no_grad():
        wanted = np.array(objective.ranked(pairs, lists, "text"))
    temperature = objective.model.temperature if name != "cross" else 1
    model = load_model(folder, file="model.fp32.onnx")
    found = np.array([model.scores(query, texts) for query in QUERIES]) / temperature
    scale = np.abs(wanted).max()
    tolerance = 0.03 if RECIPES[name]["kind"] == "poly" else 1e-3  # its token vectors are kept in 8 bits
    np.testing.assert_allclose(found / scale, wanted / scale, atol=tolerance)
    assert len(load_model(folder).scores("gout", texts)) == len(texts)
    assert list(model.scores("gout", [])) == []


def test_separate_encoders_differ_after_training(trained):
    folder, objective, _ = trained("separate")
    encoder = OnnxEncoder(folder)
    assert not np.allclose(encoder.passages(["gout pain"])[0], encoder.query("gout pain"), atol=1e-3)
    assert (folder / "torch" / "query" / "model.safetensors").is_file()
    one, two = objective.model.query_encoder, objective.model.passage_encoder
    assert not torch.equal(one.embeddings.word_embeddings.weight, two.embeddings.word_embeddings.weight)


def test_nested_vectors_can_be_cut(trained, tmp_path):
    folder, objective, _ = trained("shared")
    assert objective.dimensions == [32, 16]
    for path in folder.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    manifest = json.loads((folder / "manifest.json").read_text()) | {"dimensions": 16}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    whole, cut = OnnxEncoder(folder).passages(["gout pain"])[0], OnnxEncoder(tmp_path).passages(["gout pain"])[0]
    assert cut.shape == (16,)
    np.testing.assert_allclose(cut, whole[:16] / np.linalg.norm(whole[:16]), atol=1e-6)


def test_kept_passages_score_like_those_that_are_read_anew(trained, world):
    model = OnnxPoly(trained("poly")[0])
    texts = [text.text for text in world.passages[:10]]
    kept = model.keep(texts)
    assert all(one.codes.dtype == np.int8 for one in kept)
    assert model.scores_kept(QUERIES[0], kept) == pytest.approx(model.scores(QUERIES[0], texts))
    assert len(OnnxPoly(trained("codes")[0]).keep(texts)[0].codes) == 3


def test_a_trained_model_can_be_the_base_of_another(trained, world, tmp_path):
    folder, _, _ = trained("cross")
    recipe = Recipe("cross", str(folder), validation=0.3)
    objective = retrieval.build(world, recipe, READING, "cpu")
    first = trained("cross")[1].model.state_dict()
    assert all(torch.equal(value, first[name]) for name, value in objective.model.state_dict().items())
    scores = train(world, replace(recipe, teachers=(str(folder),)), READING, SCHEDULE, tmp_path)
    assert scores["first as torch, 32 bits"] == 1
    assert json.loads((tmp_path / "training.json").read_text())["settings"]["teachers"] == [folder.name]


def test_an_interrupted_training_goes_on_to_the_same_model(world, bert, trained, tmp_path):
    recipe = Recipe(base=str(bert), validation=0.3, name="tiny cross", licence="CC0-1.0", **RECIPES["cross"])

    def stop(report):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(world, recipe, READING, SCHEDULE, tmp_path, False, stop)
    assert (tmp_path / CHECKPOINT).is_file()
    scores = train(world, recipe, READING, SCHEDULE, tmp_path, True)
    folder, _, wanted = trained("cross")
    assert scores == wanted
    assert not (tmp_path / CHECKPOINT).exists()
    weights = [(place / "torch" / "model.safetensors").read_bytes() for place in (folder, tmp_path)]
    assert weights[0] == weights[1]


def test_too_few_pairs_are_named(bert, world, tmp_path):
    few = world.part(lambda text: text.document in ("gout 0", "asthma 0"))
    with pytest.raises(
        CaprError, match=r"there are \d passages to train on and \d+ queries .* too few. Fix: name more"
    ):
        train(few, Recipe("bi", str(bert), validation=0.5), READING, SCHEDULE, tmp_path)
    with pytest.raises(CaprError, match=r"0 queries to validate with, which is too few. Fix: "):
        train(world, Recipe("bi", str(bert), validation=0.0), READING, SCHEDULE, tmp_path)
    with pytest.raises(CaprError, match="there are 0 passages"):
        train(Pairs([], []), Recipe("bi", str(bert)), READING, SCHEDULE, tmp_path)


def in_context(world: Pairs) -> Pairs:
    passages = [replace(text, before="the of is often", after="and in with days night") for text in world.passages]
    return Pairs(passages, world.draws)


@pytest.mark.parametrize("kind", ["bi", "poly"])
def test_a_longformer_learns_passages_in_their_context(world, longformer, tmp_path, kind):
    recipe = Recipe(kind, str(longformer), validation=0.3, context=True, temperature=1.0)
    begun = retrieval.build(world, recipe, READING, "cpu").model.state_dict()
    reports = []
    scores = train(in_context(world), recipe, READING, replace(SCHEDULE, epochs=1), tmp_path, False, reports.append)
    assert set(scores) == {"R@1", "R@5"}
    assert all(np.isfinite(report.loss) for report in reports)
    assert not (tmp_path / "model.onnx").exists()  # torch alone runs it
    found = retrieval.build(world, replace(recipe, base=str(tmp_path)), READING, "cpu").model.state_dict()
    name = "passage_encoder.encoder.embeddings.word_embeddings.weight"
    assert not torch.equal(found[name], begun[name])


def test_a_base_that_cannot_read_context_is_named(world, bert, tmp_path):
    fact = f"{bert} cannot read a passage in its context. Fix: take a Longformer for --base"
    with pytest.raises(CaprError, match=re.escape(fact)):
        train(world, Recipe("bi", str(bert), context=True, validation=0.3), READING, SCHEDULE, tmp_path)


def test_an_export_that_ranks_otherwise_is_refused(trained, world, monkeypatch):
    folder, objective, _ = trained("shared")
    lists = list(world.lists(12, 20))
    assert retrieval.check(objective, folder, world, lists)["first as torch, 32 bits"] == 1
    scores = Exported.scores
    monkeypatch.setattr(Exported, "scores", lambda self, *given: -scores(self, *given))
    with pytest.raises(CaprError, match=r"puts another passage first in .* of the lists. Fix: "):
        retrieval.check(objective, folder, world, lists)


def test_a_question_of_the_source_is_enough_to_validate_with(bert, tmp_path):
    texts = [Text(str(i), "", "", f"gout pain {'rash ' * (i % 5)}") for i in range(40)]
    pairs = Pairs(texts, [Draw(i, questions=("Why does it hurt?",)) for i in range(40)])
    schedule = replace(SCHEDULE, epochs=1, batch=16)
    scores = train(pairs, Recipe("cross", str(bert), validation=0.3), replace(READING, negatives=2), schedule, tmp_path)
    assert 0 <= scores["R@1"] <= 1


def test_a_blend_lies_between_the_base_and_what_was_trained(world, bert, tmp_path):
    """Half of the base's weights are half of the way back."""
    found = {}
    for share in (0.0, 0.5):
        recipe = Recipe("bi", str(bert), validation=0.3, blend=share)
        train(world, recipe, READING, SCHEDULE, tmp_path / str(share), onnx=False)
        found[share] = load_encoder(str(tmp_path / str(share) / "torch")).state_dict()
    base, trained, half = load_encoder(str(bert)).state_dict(), found[0.0], found[0.5]
    name = "encoder.layer.0.attention.self.query.weight"
    assert not torch.allclose(base[name], trained[name], atol=1e-4)
    torch.testing.assert_close(half[name], (base[name] + trained[name]) / 2)


def test_the_scores_of_a_blend_are_its_own(world, bert, tmp_path):
    """With all of the base's weights, those of the base."""
    untrained = retrieval.build(Pairs([], []), Recipe("bi", str(bert)), READING, "cpu")
    untrained.model.eval()
    held = world.split(0.3, SCHEDULE.seed)[1]
    lists = list(held.lists(64, retrieval.LISTS, SCHEDULE.seed))
    scores = train(world, Recipe("bi", str(bert), validation=0.3, blend=1.0), READING, SCHEDULE, tmp_path, onnx=False)
    assert scores == validated(untrained, held, lists)


def test_a_blend_is_exported_as_it_ranks(world, bert, tmp_path):
    scores = train(world, Recipe("cross", str(bert), validation=0.3, blend=0.5), READING, SCHEDULE, tmp_path)
    assert scores["first as torch, 32 bits"] == 1.0

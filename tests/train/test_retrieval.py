"""Training of rankers and encoders, from pairs to a folder for search."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from capr.documents import CaprError
from capr.models.bases import MARKERS, load_encoder
from capr.models.bi import Bi
from capr.models.cross import Cross
from capr.models.export import Exported
from capr.models.family import Schedule
from capr.models.poly import Poly
from capr.models.ranking import validation_scores
from capr.runtime.encoder import OnnxEncoder
from capr.runtime.kinds import load_model
from capr.runtime.poly import OnnxPoly
from capr.supervise.pairs import Draw, LabelledPassage, TrainingPairs
from capr.train import card, ranking
from capr.train.loop import CHECKPOINT
from capr.train.ranking import train

SCHEDULE = Schedule(epochs=2, batch=8, learning_rate=1e-3, device="cpu")
READING = {"negatives": 1, "pieces": 32, "views": (("text", 2.0), ("title", 1.0)), "short": 0.0}
KINDS = {"bi": Bi, "poly": Poly, "cross": Cross}


def family(kind, base, **settings):
    """A family with the settings of these tests."""
    return KINDS[kind](base=str(base), **{**READING, **settings})


RECIPES = {
    "shared": {"kind": "bi", "markers": True, "dimensions": (32, 16)},
    "separate": {"kind": "bi", "shared": False, "pooling": "mean"},
    "poly": {"kind": "poly", "scaled": True},
    "codes": {
        "kind": "poly",
        "similarity": "cosine",
        "temperature": 0.03,
        "project": False,
        "scaled": True,
        "codes": 3,
    },
    "cross": {"kind": "cross", "layers": 1},
}
QUERIES = ["What are the symptoms of gout?", "treatment of rabies", ""]


@pytest.fixture(scope="module")
def trained(world, bert, tmp_path_factory):
    """A trained model of each recipe: its folder, the exported objective and its scores."""
    actual = {}

    def recipe_of(name: str):
        if name not in actual:
            folder = tmp_path_factory.mktemp(name)
            mine = family(base=bert, validation=0.3, name=f"tiny {name}", licence="CC0-1.0", **RECIPES[name])
            built = []
            with pytest.MonkeyPatch.context() as patch:
                make = type(mine).objective
                patch.setattr(type(mine), "objective", lambda *arguments: built.append(make(*arguments)) or built[0])
                longer = replace(SCHEDULE, epochs=12, learning_rate=2e-3)
                # in 8 bits, passages have to be far apart
                schedule = SCHEDULE if name in ("shared", "cross") else longer
                scores = train(world, mine, schedule, folder)
            actual[name] = folder, built[0], scores
        return actual[name]

    return recipe_of


@pytest.mark.parametrize("name", RECIPES)
def test_a_folder_has_all_that_a_program_needs(trained, name):
    folder, _, scores = trained(name)
    expected = {"model.onnx", "model.fp32.onnx", "tokenizer.json", "manifest.json", "config.json", "torch"}
    expected |= {"README.md", "training.json"}
    if name in ("separate", "poly", "codes"):
        expected |= {"query.onnx", "query.fp32.onnx"}
    if name == "poly":
        expected |= {"projection.npy"}
    assert {path.name for path in folder.iterdir()} == expected
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
    card_text = (folder / "README.md").read_text()
    facts = json.loads((folder / "training.json").read_text())
    assert card_text.startswith(f"# tiny {name}\n")
    assert card.revision() in card_text
    assert facts["revision"] == card.revision()
    assert "Licence of the training data: CC0-1.0." in card_text
    assert (facts["data"]["documents"], facts["data"]["passages"], facts["data"]["draws"]) == (24, 48, 48)
    assert "| passages | 48 |" in card_text
    assert f"| learning_rate | {facts['settings']['learning_rate']} |" in card_text
    assert facts["settings"]["negatives"] == 1
    assert facts["settings"]["seed"] == 1
    assert facts["scores"] == scores
    for measure in scores:
        assert f"| {card.label(measure)} | " in card_text
    assert "| same top passage as torch, 8 bits | " in card_text
    assert str(folder.parent) not in card_text


@pytest.mark.parametrize("name", RECIPES)
def test_the_exported_model_scores_like_torch(trained, world, name):
    folder, objective, _ = trained(name)
    texts = [text.view("text") for text in world.passages[:20]] + ["gout", ""]
    pairs = TrainingPairs([LabelledPassage("d", "", "", text) for text in texts], [])
    lists = [(query, list(range(len(texts))), set()) for query in QUERIES]
    with torch.no_grad():
        expected = np.array(objective.score_lists(pairs, lists, "text"))
    temperature = objective.model.temperature if name != "cross" else 1
    model = load_model(folder, file="model.fp32.onnx")
    actual = np.array([model.scores(query, texts) for query in QUERIES]) / temperature
    scale = np.abs(expected).max()
    tolerance = 0.03 if RECIPES[name]["kind"] == "poly" else 1e-3  # its token vectors are kept in 8 bits
    np.testing.assert_allclose(actual / scale, expected / scale, atol=tolerance)
    assert len(load_model(folder).scores("gout", texts)) == len(texts)
    assert list(model.scores("gout", [])) == []


def test_separate_encoders_differ_after_training(trained):
    folder, objective, _ = trained("separate")
    encoder = OnnxEncoder(folder)
    assert not np.allclose(encoder.passages(["gout pain"])[0], encoder.query("gout pain"), atol=1e-3)
    assert (folder / "torch" / "query" / "model.safetensors").is_file()
    query_encoder, passage_encoder = objective.model.query_encoder, objective.model.passage_encoder
    assert not torch.equal(
        query_encoder.embeddings.word_embeddings.weight, passage_encoder.embeddings.word_embeddings.weight
    )


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


def test_stored_passages_score_like_passages_that_are_read_again(trained, world):
    model = OnnxPoly(trained("poly")[0])
    texts = [text.text for text in world.passages[:10]]
    stored = model.keep(texts)
    assert all(passage.codes.dtype == np.int8 for passage in stored)
    assert model.scores_kept(QUERIES[0], stored) == pytest.approx(model.scores(QUERIES[0], texts))
    assert len(OnnxPoly(trained("codes")[0]).keep(texts)[0].codes) == 3


def test_a_trained_model_can_be_the_base_of_another(trained, world, tmp_path):
    folder, _, _ = trained("cross")
    again = family("cross", folder, validation=0.3)
    objective = again.objective(world, "cpu")
    first = trained("cross")[1].model.state_dict()
    assert all(torch.equal(value, first[name]) for name, value in objective.model.state_dict().items())
    scores = train(world, replace(again, teachers=(str(folder),)), SCHEDULE, tmp_path)
    assert scores["first as torch, 32 bits"] == 1
    assert json.loads((tmp_path / "training.json").read_text())["settings"]["teachers"] == [folder.name]


def test_an_interrupted_training_ends_with_the_same_model(world, bert, trained, tmp_path):
    mine = family(base=bert, validation=0.3, name="tiny cross", licence="CC0-1.0", **RECIPES["cross"])

    def stop(report):
        if report.scores:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(world, mine, SCHEDULE, tmp_path, False, stop)
    assert (tmp_path / CHECKPOINT).is_file()
    scores = train(world, mine, SCHEDULE, tmp_path, True)
    folder, _, expected = trained("cross")
    assert scores == expected
    assert not (tmp_path / CHECKPOINT).exists()
    weights = [(place / "torch" / "model.safetensors").read_bytes() for place in (folder, tmp_path)]
    assert weights[0] == weights[1]


def test_too_few_pairs_are_named(bert, world, tmp_path):
    few = world.part(lambda text: text.document in ("gout 0", "asthma 0"))
    with pytest.raises(
        CaprError, match=r"there are \d passages to train on and \d+ queries .* too few. Fix: name more"
    ):
        train(few, family("bi", bert, validation=0.5), SCHEDULE, tmp_path)
    with pytest.raises(CaprError, match=r"0 queries to validate with, which is too few. Fix: "):
        train(world, family("bi", bert, validation=0.0), SCHEDULE, tmp_path)
    with pytest.raises(CaprError, match="there are 0 passages"):
        train(TrainingPairs([], []), family("bi", bert), SCHEDULE, tmp_path)


def in_context(world: TrainingPairs) -> TrainingPairs:
    passages = [replace(text, before="the of is often", after="and in with days night") for text in world.passages]
    return TrainingPairs(passages, world.draws)


@pytest.mark.parametrize("kind", ["bi", "poly"])
def test_a_longformer_learns_passages_in_their_context(world, longformer, tmp_path, kind):
    mine = family(kind, longformer, validation=0.3, long_context=True, temperature=1.0)
    begun = mine.objective(world, "cpu").model.state_dict()
    reports = []
    scores = train(in_context(world), mine, replace(SCHEDULE, epochs=1), tmp_path, False, reports.append)
    assert set(scores) == {"R@1", "R@5"}
    assert all(np.isfinite(report.loss) for report in reports)
    assert not (tmp_path / "model.onnx").exists()  # torch alone runs it
    actual = replace(mine, base=str(tmp_path)).objective(world, "cpu").model.state_dict()
    name = "passage_encoder.encoder.embeddings.word_embeddings.weight"
    assert not torch.equal(actual[name], begun[name])


def test_a_base_that_cannot_read_context_is_named(world, bert, tmp_path):
    fact = f"{bert} cannot read a passage in its context. Fix: take a Longformer for --base"
    with pytest.raises(CaprError, match=re.escape(fact)):
        train(world, family("bi", bert, long_context=True, validation=0.3), SCHEDULE, tmp_path)


def test_an_export_that_ranks_differently_is_refused(trained, world, monkeypatch):
    folder, objective, _ = trained("shared")
    lists = list(world.lists(12, 20))
    assert ranking.check(objective, folder, world, lists)["first as torch, 32 bits"] == 1
    forward = Exported.forward
    monkeypatch.setattr(Exported, "forward", lambda self, **inputs: forward(self, **inputs).roll(1, 0))
    with pytest.raises(CaprError, match=r"puts another passage first in .* of the lists. Fix: "):
        ranking.check(objective, folder, world, lists)


def test_a_question_of_the_source_is_enough_to_validate_with(bert, tmp_path):
    texts = [LabelledPassage(str(i), "", "", f"gout pain {'rash ' * (i % 5)}") for i in range(40)]
    pairs = TrainingPairs(texts, [Draw(i, questions=("Why does it hurt?",)) for i in range(40)])
    schedule = replace(SCHEDULE, epochs=1, batch=16)
    scores = train(pairs, family("cross", bert, validation=0.3, negatives=2), schedule, tmp_path)
    assert 0 <= scores["R@1"] <= 1


def test_a_blend_is_between_the_base_and_the_trained_weights(world, bert, tmp_path):
    """With a blend of a half, the weights are halfway between base and trained model."""
    actual = {}
    for share in (0.0, 0.5):
        train(world, family("bi", bert, validation=0.3, blend=share), SCHEDULE, tmp_path / str(share), onnx=False)
        actual[share] = load_encoder(str(tmp_path / str(share) / "torch")).state_dict()
    base, trained, half = load_encoder(str(bert)).state_dict(), actual[0.0], actual[0.5]
    name = "encoder.layer.0.attention.self.query.weight"
    assert not torch.allclose(base[name], trained[name], atol=1e-4)
    torch.testing.assert_close(half[name], (base[name] + trained[name]) / 2)


def test_the_scores_of_a_blend_are_its_own(world, bert, tmp_path):
    """With a blend of 1, the weights are those of the base."""
    untrained = family("bi", bert).objective(TrainingPairs([], []), "cpu")
    untrained.model.eval()
    held_out = world.split(0.3, SCHEDULE.seed)[1]
    lists = list(held_out.lists(64, ranking.LISTS, SCHEDULE.seed))
    scores = train(world, family("bi", bert, validation=0.3, blend=1.0), SCHEDULE, tmp_path, onnx=False)
    assert scores == validation_scores(untrained, held_out, lists)


def test_a_blend_is_exported_as_it_ranks(world, bert, tmp_path):
    scores = train(world, family("cross", bert, validation=0.3, blend=0.5), SCHEDULE, tmp_path)
    assert scores["first as torch, 32 bits"] == 1.0

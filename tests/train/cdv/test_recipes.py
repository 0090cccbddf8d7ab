"""Recipes of discourse models, and interrupted runs."""

import json
from dataclasses import replace

import numpy as np
import onnx
import pytest
from articles import DISEASES, documents, halved, labelled
from typer.testing import CliRunner

import capr
from capr.annotate.mentions import annotator
from capr.cli import typer_app
from capr.cli.sources.discourses import describing
from capr.documents import CaprError, Document
from capr.models.cdv import Sizes
from capr.models.cdv_family import OURS, PAPER
from capr.models.family import Schedule
from capr.runtime import arrays
from capr.runtime.discourse import OnnxDiscourse, description_space
from capr.runtime.subwords import read_glove
from capr.supervise.discourses import TrainingDiscourses
from capr.supervise.labels import Labeller
from capr.train.cdv import CdvSources, _features, train
from capr.train.cdv_spaces import Description, train_codes


def test_a_resumed_run_trains_the_same_model(world, tmp_path):
    discourses, vectors = labelled(world), read_glove(world / "glove.txt")
    recipe = replace(OURS, sizes=Sizes(8, 8), dimensions=8)
    schedule = Schedule(epochs=2, batch=8, learning_rate=1e-3, device="cpu", patience=0)

    class StopError(Exception):
        pass

    validated = []

    def stop(report):
        if validated:  # so that the checkpoint of the first epoch is there
            raise StopError
        if report.scores:
            validated.append(report)

    whole = train(discourses, recipe, schedule, tmp_path / "whole", CdvSources(vectors))
    with pytest.raises(StopError):
        train(discourses, recipe, schedule, tmp_path / "part", CdvSources(vectors), progress=stop)
    assert (tmp_path / "part" / "checkpoint.pt").is_file()
    assert train(discourses, recipe, schedule, tmp_path / "part", CdvSources(vectors), resume=True) == whole
    for name in ("model.onnx", "words.npz"):
        assert (tmp_path / "part" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_the_recipe_of_the_paper(world, tmp_path):
    recipe = replace(PAPER, sizes=replace(PAPER.sizes, hidden=8, delta=8), dimensions=16)
    schedule = Schedule(epochs=2, batch=8, learning_rate=1e-3, device="cpu")
    described = [(("King's evil", "scrofula"), "a painful swelling")]
    train(
        labelled(world), recipe, schedule, tmp_path, CdvSources(read_glove(world / "glove.txt"), descriptions=described)
    )
    model = OnnxDiscourse(tmp_path)
    assert model.manifest.space == "codes"
    known, alias, unseen = (model.query(name, "")[:16] for name in ("king's evil", "Scrofula", "asthma attack"))
    np.testing.assert_array_equal(known, alias)
    assert np.linalg.norm(unseen) == pytest.approx(0.5**0.5, abs=1e-5)
    assert not np.allclose(known, unseen)
    assert not model.query("zebra", "zebra").any()  # GloVe knows no part of it
    assert model.sentences(Document("x", "Gout hurts. It swells."))[1].shape == (2, 32)


def test_the_space_of_codes_separates_aspects_although_one_is_frequent(world, tmp_path):
    words = read_glove(world / "glove.txt")
    names = DISEASES[:6]
    often = {word: 60 if number == 0 else 6 for number, word in enumerate(names)}
    described = [Description(f"{word} {word}", (word,), (word,)) for word, count in often.items() for _ in range(count)]
    train_codes(described, words, tmp_path, "aspects", 16, epochs=120, balanced=True)
    vectors = description_space(tmp_path, words, "aspects").vectors(names)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    alike = (vectors @ vectors.T)[~np.eye(len(names), dtype=bool)]
    assert alike.mean() < 0.3  # 0.43 without balancing frequent codes, or with unused bits


def test_descriptions_of_a_test_are_not_learned_from(world):
    document = documents(world)[0]
    first, *others = (document[span] for span in capr.sentences(document.text))
    finder = annotator(False)
    descriptions = describing(
        [str(world / "articles.jsonl")], Labeller(finder, held_out_texts=[f"See:  {first}\nAnd more."])
    )
    texts = [text for names, text in descriptions if names[0] == "Asthma"]
    assert first not in texts
    assert set(others) <= set(texts)


def test_balanced(world, tmp_path):
    shorter = tmp_path / "few.discourses.gz"
    discourses = labelled(world)
    TrainingDiscourses(discourses.documents[:8], discourses.entities, discourses.aspects).save(shorter)
    arguments = ["train", "cdv", str(shorter), "-o", str(tmp_path / "x"), "--vectors", str(world / "glove.txt")]
    result = CliRunner().invoke(typer_app, [*arguments, "--epochs", "1", "--device", "cpu", "--balanced"])
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "x" / "training.json").read_text())["settings"]["balanced"] is True


def test_the_embedding_of_equation_4_and_the_loss_of_equation_12(world, tmp_path):
    discourses = labelled(world)
    TrainingDiscourses(discourses.documents[:8], discourses.entities, discourses.aspects).save(
        tmp_path / "few.discourses.gz"
    )
    arguments = ["train", "cdv", str(tmp_path / "few.discourses.gz"), "--vectors", str(world / "glove.txt"), "--recipe"]
    arguments += ["paper", "--epochs", "1", "--device", "cpu", "--loss", "distance"]
    for embedding, layers in (("ends", 0), ("dense", 1)):
        out = tmp_path / embedding
        result = CliRunner().invoke(typer_app, [*arguments, "-o", str(out), "--embedding", embedding])
        assert result.exit_code == 0, result.output
        settings = json.loads((out / "training.json").read_text())["settings"]
        assert (settings["loss"], settings["dense"]) == ("distance", bool(layers))
        operators = [node.op_type for node in onnx.load(out / "entities.onnx").graph.node]
        assert (operators.count("LSTM"), operators.count("Tanh")) == (1, layers)
        assert np.linalg.norm(OnnxDiscourse(out).query("gout", "")) == pytest.approx(0.5**0.5, abs=1e-5)


def test_damaged_spaces_are_trained_again(world, tmp_path):
    recipe = replace(PAPER, sizes=replace(PAPER.sizes, hidden=8, delta=8), dimensions=16)
    schedule, sources = Schedule(epochs=1, batch=8, device="cpu"), CdvSources(read_glove(world / "glove.txt"))
    discourses = TrainingDiscourses(labelled(world).documents[:8], labelled(world).entities, labelled(world).aspects)
    train(discourses, recipe, schedule, tmp_path, sources)
    whole = {name: (tmp_path / name).read_bytes() for name in ("entities.npz", "aspects.onnx", "aspects.npz")}
    halved(tmp_path / "entities.npz")
    halved(tmp_path / "aspects.onnx")
    train(discourses, recipe, schedule, tmp_path, sources, resume=True)
    assert {name: (tmp_path / name).read_bytes() for name in whole} == whole
    halved(tmp_path / "words.npz")
    with pytest.raises(CaprError, match=r"words\.npz holds no word vectors.*Fix: "):
        train(discourses, recipe, schedule, tmp_path, sources, resume=True)


def test_vectors_of_sentences_are_saved_atomically(world, tmp_path, monkeypatch):
    discourses, path = labelled(world), tmp_path / "vectors.npz"
    training, held_out = discourses.split(0.1, 1)
    reads = []

    def read(texts):
        reads.append(len(texts))
        return np.arange(len(texts) * 2, dtype=np.float32).reshape(-1, 2)

    def read_features():
        reads.clear()
        return [row.tolist() for part in _features(training, held_out, read, path, lambda report: None) for row in part]

    first = read_features()
    assert reads
    assert read_features() == first
    assert not reads
    halved(path)
    assert read_features() == first
    assert reads

    def interrupted(file, **arrays):
        file.write(b"PK")
        raise KeyboardInterrupt

    content = path.read_bytes()
    monkeypatch.setattr(np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        arrays.save(path, compressed=False, vectors=np.zeros(1))
    assert path.read_bytes() == content

"""The sources of discourse models besides documents, and errors for unusable sources."""

import gzip
import json
import math
import shutil
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from articles import halved, labelled
from typer.testing import CliRunner

from capr.cli import typer_app
from capr.cli.sources.discourses import DiscourseSource
from capr.documents import CaprError, Document
from capr.models.cdv import Sizes
from capr.models.cdv_family import OURS
from capr.models.family import Schedule
from capr.runtime.discourse import OnnxDiscourse
from capr.runtime.encoder import OnnxEncoder
from capr.runtime.shipped import shipped
from capr.runtime.subwords import read_glove
from capr.supervise.discourses import TrainingDiscourses
from capr.train.cdv import CdvSources, train

_spec = spec_from_file_location("reference", Path(__file__).parents[2] / "index" / "reference.py")
reference = module_from_spec(_spec)
_spec.loader.exec_module(reference)


def test_too_few_documents(world, tmp_path):
    few = TrainingDiscourses(labelled(world).documents[:3])
    with pytest.raises(CaprError, match="too few"):
        train(few, OURS, Schedule(), tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--recipe", "mine"], "--recipe does not accept 'mine'"),
        (["--network", "gru"], "--network does not accept 'gru'"),
        (["--space", "outer"], "--space does not accept 'outer'"),
        (["--tune", "1"], "there is none"),
        (["--vectors", "none.txt"], "there is no none.txt"),
        (["--device", "tpu"], "--device does not accept 'tpu'"),
        (["--space", "encoder"], "needs an encoder"),
        (["--descriptions", "a.jsonl"], "--descriptions are for --space codes, and the space is names"),
        (["--recipe", "paper", "--query-encoder", "a"], "--query-encoder is for --space encoder"),
        (["--base", "a", "--space", "encoder", "--vectors", "b"], "does not read"),
        (["--loss", "huber"], "--loss does not accept 'huber'. Fix: use softmax or smoothed or distance or element"),
        (["--recipe", "paper", "--embedding", "sum"], "--embedding does not accept 'sum'. Fix: use dense or ends"),
        (["--embedding", "ends"], "--embedding is for --space codes, and the space is names"),
    ],
)
def test_bad_options_of_the_command_raise_errors(world, tmp_path, options, message):
    actual = CliRunner().invoke(
        typer_app, ["train", "cdv", str(world / "articles.jsonl"), "-o", str(tmp_path / "x"), "--epochs", "1", *options]
    )
    assert isinstance(actual.exception, CaprError)
    assert message in str(actual.exception)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--vectors", "none.npz"], "there is no none.npz. Fix: name GloVe's text"),
        (["--vectors", "folder.npz"], "folder.npz is a folder, not a file of word vectors. Fix: name GloVe's text"),
        (["--vectors", "glove.txt.gz"], "glove.txt.gz is compressed (gzip), not plain text. Fix: unpack it"),
        (["--vectors", "wrong.txt"], "wrong.txt, line 2: 'b 1\\n' has 1 values instead of 2"),
        (["--base", "none"], "there is no folder none. Fix: name the folder of"),
        (["--base", "folder.npz"], "folder.npz is not an encoder: it has neither config.json nor model.onnx. Fix: "),
        (
            ["--base", "bare"],
            'no manifest.json. Fix: put tokenizer.json and a manifest.json with name, kind ("encoder"), ',
        ),
        (["--base", "optimum"], "optimum has model.onnx, but no manifest.json. Fix: "),
        (["--base", "ranker"], "has kind 'ranker'"),
        (["--base", "tiny", "--tune", "1"], "tiny has no config.json, so it can neither be tuned"),
        (["--base", "untold"], "untold has no tokenizer. Fix: "),
        (["--space", "encoder", "--query-encoder", "none"], "there is no folder none"),
        (
            ["--space", "encoder", "--query-encoder", "folder.npz"],
            "no model.onnx and no tokenizer.json and no manifest",
        ),
        (["--space", "encoder", "--query-encoder", "bare"], "has no manifest.json, which a query space needs. Fix: "),
        (["--space", "encoder", "--query-encoder", "ranker"], "has kind 'ranker'"),
    ],
)
def test_unusable_sources_raise_errors_before_documents_are_read(tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(DiscourseSource, "labelled", lambda *arguments: pytest.fail("documents were read"))
    Path("folder.npz").mkdir()
    Path("glove.txt.gz").write_bytes(gzip.compress(b"the 1 2\n"))
    Path("wrong.txt").write_text("a 1 2\nb 1\n")
    reference.ranker_folder(Path("ranker"))
    reference.encoder_folder(Path("tiny"))
    for name in ("bare", "optimum"):
        reference.encoder_folder(Path(name))
        Path(name, "manifest.json").unlink()
    for name in ("untold", "optimum"):
        Path(name).mkdir(exist_ok=True)
        Path(name, "config.json").write_text('{"model_type": "bert"}')
    actual = CliRunner().invoke(typer_app, ["train", "cdv", "a.jsonl", "-o", "out", "--device", "cpu", *options])
    assert isinstance(actual.exception, CaprError), actual.output
    assert message in str(actual.exception)
    assert not Path("out").exists()


def test_an_unusable_base_raises_an_error_before_word_vectors_are_trained(world, tmp_path, bert):
    shutil.copytree(bert, tmp_path / "base")
    halved(tmp_path / "base" / "model.safetensors")
    with pytest.raises(CaprError, match="base cannot be loaded"):
        train(labelled(world), OURS, Schedule(device="cpu"), tmp_path / "out", CdvSources(base=str(tmp_path / "base")))
    assert not (tmp_path / "out").exists()


def test_a_query_encoder_keeps_its_own_network_for_queries(world, tmp_path):
    own, plain = reference.encoder_folder(tmp_path / "own"), reference.encoder_folder(tmp_path / "plain")
    other = reference.encoder_folder(tmp_path / "other", seed=8)
    (own / "query.onnx").write_bytes((other / "model.onnx").read_bytes())
    recipe = replace(OURS, sizes=Sizes(8, 8), space="encoder", weights=(1.0, 1.0))
    discourses = labelled(world)
    few = TrainingDiscourses(discourses.documents[:8], discourses.entities, discourses.aspects)
    vectors, out = read_glove(world / "glove.txt"), tmp_path / "out"
    actual = {}
    for folder in (own, plain):
        (out / "training.json").unlink(missing_ok=True)  # as if the run before had been interrupted at its end
        (out / "manifest.json").unlink(missing_ok=True)
        train(few, recipe, Schedule(epochs=1, device="cpu"), out, CdvSources(vectors, queries=str(folder)))
        actual[folder] = OnnxDiscourse(out).query("gout", "")[:16] * math.sqrt(2)
        np.testing.assert_allclose(actual[folder], OnnxEncoder(folder).query("gout"), atol=1e-5)
    assert not np.allclose(actual[own], actual[plain], atol=0.1)
    assert not (out / "queries" / "query.onnx").exists()  # of the encoder before


def test_a_language_model_reads_the_sentences_and_is_tuned(world, tmp_path, bert):
    recipe = replace(OURS, sizes=Sizes(8, 8, over="transformer"), dimensions=8)
    schedule = Schedule(epochs=1, batch=8, learning_rate=1e-3, device="cpu")
    sources = CdvSources(read_glove(world / "glove.txt"), str(bert), tuning=replace(schedule, learning_rate=1e-4))
    train(labelled(world), recipe, schedule, tmp_path, sources)
    model = OnnxDiscourse(tmp_path)
    assert model.manifest.sentences == ("encoder",)
    assert json.loads((tmp_path / "sentences" / "manifest.json").read_text())["pooling"] == "cls"
    spans, vectors = model.sentences(Document("x", "Gout pain. " * 500))
    assert vectors.shape == (500, 16)
    assert len(spans) == 500


@pytest.mark.shipped
def test_with_an_encoder_sketches_distinguish_words(world, tmp_path):
    recipe, vectors = replace(OURS, sizes=Sizes(8, 8), dimensions=24), read_glove(world / "glove.txt")
    schedule = Schedule(epochs=1, batch=8, device="cpu")
    train(labelled(world), recipe, schedule, tmp_path, CdvSources(vectors, base="encoder"))
    model = OnnxDiscourse(tmp_path)
    assert model.manifest.sentences == ("encoder", "sketch")
    assert model.manifest.sketched == recipe.sketched
    assert model.sentences(Document("x", "Gout hurts. It swells."))[1].shape == (2, 48)
    (tmp_path / "words.npz").unlink()
    with pytest.raises(CaprError, match=r"no words\.npz.*Fix: "):
        OnnxDiscourse(tmp_path)


@pytest.mark.shipped
def test_the_shipped_encoder_reads_sentences_and_queries(world, tmp_path):
    recipe = replace(OURS, sizes=Sizes(8, 8), space="encoder")
    schedule = Schedule(epochs=1, batch=8, learning_rate=1e-3, device="cpu")
    stages = set()
    train(
        labelled(world),
        recipe,
        schedule,
        tmp_path,
        CdvSources(base="encoder"),
        progress=lambda report: stages.add(report.stage),
    )
    assert stages == {"sentences", "cdv"}
    for name in ("sentences", "queries"):
        assert (tmp_path / name / "model.onnx").read_bytes() == (shipped("encoder") / "model.onnx").read_bytes()
    assert not (tmp_path / "words.npz").exists()
    model = OnnxDiscourse(tmp_path)
    spans, vectors = model.sentences(Document("x", "Gout hurts. It is treated with rest."))
    assert vectors.shape == (len(spans), 768)
    query = model.query("gout", "treatment")
    assert np.linalg.norm(query) == pytest.approx(np.linalg.norm(recipe.weights) / np.sqrt(2), abs=1e-3)

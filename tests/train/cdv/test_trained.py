"""A discourse model that the command trains from documents, and that runs without torch."""

import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

import capr
from capr.cli import typer_app
from capr.documents import CaprError, Document
from capr.runtime.discourse import OnnxDiscourse
from capr.runtime.kinds import kind_of


@pytest.fixture(scope="module")
def trained(world):
    """The folder that the command writes, and its output."""
    out = world / "cdv"
    result = CliRunner().invoke(
        typer_app,
        [
            "train",
            "cdv",
            str(world / "articles.jsonl"),
            "-o",
            str(out),
            "--vectors",
            str(world / "glove.txt"),
            "--without",
            str(world / "without.txt"),
            "--epochs",
            "12",
            "--batch",
            "4",
            "--learning-rate",
            "3e-3",
            "--device",
            "cpu",
            "--licence",
            "CC0",
        ],
    )
    assert result.exit_code == 0, result.output
    return out, result.output


def test_training_ends_above_chance(trained):
    out, output = trained
    card = json.loads((out / "training.json").read_text())
    assert card["scores"]["R@1"] > 0.3  # by chance one of twelve
    assert card["licence"] == "CC0"
    assert card["data"]["documents"] == 56
    assert "8 documents and passages left out" in output
    assert sorted(path.name for path in out.iterdir()) == [
        "README.md",
        "manifest.json",
        "model.onnx",
        "names.npz",
        "training.discourses.gz",
        "training.json",
        "words.npz",
    ]


def test_a_trained_model_finds_the_sentences(trained):
    out, _ = trained
    assert kind_of(out).role == "discourse"
    model = OnnxDiscourse(out)
    text = "Mumps pain fever rash often.\nIt wheeze cough often many.\nIt surgery rest tablets then.\n"
    spans, vectors = model.sentences(Document("x", text))
    assert vectors.shape == (3, 48)
    assert len(spans) == 3
    np.testing.assert_allclose(np.linalg.norm(vectors[:, :24], axis=1), [0.5**0.5] * 3, atol=1e-5)
    symptoms, treatment = vectors @ model.query("", "Symptoms"), vectors @ model.query("", "treatment")
    assert symptoms[:2].min() > symptoms[2]
    assert treatment[2] > treatment[:2].max()


def test_queries(trained):
    model = OnnxDiscourse(trained[0])
    both, entity, aspect, none = (
        model.query(*query) for query in (("mumps", "signs"), ("mumps", ""), ("", "signs"), ("", ""))
    )
    np.testing.assert_allclose(both, entity + aspect, atol=1e-6)
    assert not entity[24:].any()
    assert not aspect[:24].any()
    assert not none.any()
    assert np.linalg.norm(entity) == pytest.approx(1.3 / math.sqrt(2), abs=1e-5)
    assert np.isfinite(model.query("no such disease", "dawn song")).all()  # unknown names are encoded on the fly


def test_words_unknown_to_the_model_are_reported(trained, tmp_path):
    """GloVe has no n-grams: the vector of an aspect without known words is zero."""
    library = capr.Library(tmp_path / "library", encoder="none", discourse=trained[0])
    library.add([Document("mumps", "Mumps pain fever.", "Mumps"), Document("rabies", "Rabies rest tablets.", "Rabies")])
    nothing = library.search(capr.Query(aspect="zebra"), mode="cdv")
    notice = "the discourse model knows no word of the aspect 'zebra' of the query, so that"
    assert (len(nothing), nothing.notices) == (0, (f"{notice} nothing was found",))
    results = library.search(capr.Query(entity="rabies", aspect="zebra"), mode="cdv")
    assert (results[0].document, results.notices) == ("rabies", (f"{notice} its other half alone decides",))


def test_documents_of_any_length(trained):
    model = OnnxDiscourse(trained[0])
    for text, count in (("", 0), ("Gout.", 1), ("It hurts. " * 5000, 5000)):
        spans, vectors = model.sentences(Document("x", text))
        assert len(spans) == count
        assert vectors.shape == (count, 48)
        assert np.isfinite(vectors).all()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--without", "none.txt"], "--without would"),
        (["--without-passages", "none.jsonl", "--part", "train"], "--part and --without-passages would"),
        (["--aliases", "none.json", "--no-aspects-from-text"], "--no-aspects-from-text and --aliases would"),
        (["--vocabulary", "none.csv"], "--vocabulary would"),
    ],
)
def test_labelled_documents_are_not_labelled_again(trained, tmp_path, options, named):
    arguments = ["train", "cdv", str(trained[0] / "training.discourses.gz"), "-o", str(tmp_path / "x"), *options]
    result = CliRunner().invoke(typer_app, arguments)
    assert isinstance(result.exception, CaprError)
    assert named in str(result.exception)
    assert "Fix: make it again from the documents" in str(result.exception)

"""Discourse models in the protocols of CDV: passages in their documents, matches, answers without boundaries."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from capr.cli import typer_app
from capr.documents import CaprError, Document, Span
from capr.evaluate import medquad
from capr.evaluate.discourse import DiscourseScorer, passage_vector
from capr.evaluate.hidden_boundaries import best_run, f1, measure_cuts
from capr.evaluate.matches import matches, shares
from capr.evaluate.measures import measure
from capr.evaluate.task import Task, TaskQuery
from capr.runtime.identity import EncoderIdentity
from capr.segment import sentences

TEXT = "Gout hurts.\nIt swells.\nColchicine helps gout.\nRest helps.\n"
NAMES = ("gout", "asthma"), ("symptoms", "treatment")
SIGNS = {"symptoms": ("hurt", "swell", "wheeze"), "treatment": ("help", "inhale")}


class FakeDiscourse:
    """A discourse model that takes the entity from the first word of a text, and aspects from their signs."""

    identity = EncoderIdentity("fake", "", 4, "")
    threshold = 0.5

    def __init__(self):
        self.read = []

    def sentences(self, document):
        self.read.append(document.id)
        spans = sentences(document.text)
        rows = []
        for span in spans:
            entity = [float(document.text.lower().startswith(name)) for name in NAMES[0]]
            aspect = [float(any(sign in document[span].lower() for sign in SIGNS[name])) for name in NAMES[1]]
            rows.append([*entity, *aspect])
        return spans, (np.array(rows, np.float32) / np.sqrt(2)).reshape(-1, 4)

    def query(self, entity, aspect):
        halves = [float(entity.lower() == name) for name in NAMES[0]] + [float(aspect == name) for name in NAMES[1]]
        return (np.array(halves) / np.sqrt(2)).astype(np.float32)


@pytest.fixture
def task():
    documents = {"a": Document("a", TEXT), "b": Document("b", "Asthma wheezes.\nInhale.\nHelp is near.\n")}
    spans = {"a1": ("a", Span(0, 23)), "a2": ("a", Span(23, 58)), "b1": ("b", Span(0, 16)), "b2": ("b", Span(16, 38))}
    passages = {id: documents[document][span] for id, (document, span) in spans.items()}
    queries = [
        TaskQuery(f"{entity} {aspect}", entity, aspect, "", frozenset({id}), tuple(passages), {"aspect": aspect})
        for id, entity, aspect in (
            ("a1", "Gout", "symptoms"),
            ("a2", "Gout", "treatment"),
            ("b1", "Asthma", "symptoms"),
        )
    ]
    return Task("small", passages, queries, documents=documents, spans=spans)


def test_a_passage_scores_as_the_mean_of_its_sentences(task):
    model = FakeDiscourse()
    run = DiscourseScorer(model).run(task, "tuple", lambda done, total: None)
    assert model.read == ["a", "b"]  # each document once
    assert run["Gout treatment"] == pytest.approx({"a1": 0.5, "a2": 1.0, "b1": 0.0, "b2": 0.5})


def test_questions_and_passages_without_documents_are_refused(task):
    scorer = DiscourseScorer(FakeDiscourse())
    with pytest.raises(CaprError, match="--queries tuple"):
        scorer.run(task, "question", lambda done, total: None)
    with pytest.raises(CaprError, match="without their documents"):
        scorer.run(Task("bare", task.passages, task.queries), "tuple", lambda done, total: None)


def test_passages_that_do_not_match_sentences():
    vectors = np.eye(2, dtype=np.float32)
    spans = [Span(0, 10), Span(11, 20)]
    assert passage_vector(spans, vectors, Span(0, 20)).tolist() == [0.5, 0.5]
    assert passage_vector(spans, vectors, Span(3, 5)).tolist() == [1, 0]
    assert passage_vector(spans, vectors, Span(30, 40)).tolist() == [0, 0]


def test_matches_of_the_first_passage(task):
    run = {
        "Gout symptoms": {"a1": 1.0, "a2": 0.0},
        "Gout treatment": {"a1": 1.0, "b1": 0.0},
        "Asthma symptoms": {"a1": 1.0},
    }
    by_query = matches(task, run)
    assert by_query == {"Gout symptoms": "both", "Gout treatment": "entity", "Asthma symptoms": "aspect"}
    assert shares(by_query) == {"both": 1 / 3, "entity": 1 / 3, "aspect": 1 / 3, "neither": 0}
    assert matches(task, {"Gout symptoms": {"b2": 1.0}})["Gout symptoms"] == "neither"
    assert measure(task, run, "m", "tuple").as_json()["matches"]["both"] == 1 / 3


def test_measures_of_each_way_to_cut(task):
    runs, windows, headings = measure_cuts(task, FakeDiscourse())
    assert runs.way == "runs"
    assert runs.anywhere == runs.in_document == pytest.approx(1.0, abs=0.02)
    assert windows.anywhere < runs.anywhere
    assert headings.in_document < runs.in_document


def test_f1_of_characters():
    assert f1(Span(0, 4), Span(0, 4)) == 1
    assert f1(Span(0, 0), Span(0, 4)) == 0
    assert best_run([(0, 1), (1, 3)], np.array([0.1, 0.5, 0.7], np.float32)).first == 1
    assert best_run([], np.zeros(0, np.float32)).last == 0


def test_passages_of_medquad_have_spans(small_medquad):
    task = medquad.load(small_medquad)
    for id, (document, span) in task.spans.items():
        assert task.documents[document][span] == task.passages[id]


def test_the_command(small_medquad, monkeypatch, tmp_path):
    folder = tmp_path / "cdv"
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({"kind": "cdv"}))
    monkeypatch.setattr("capr.runtime.discourse.OnnxDiscourse", lambda folder: FakeDiscourse())
    command = ["evaluate", "medquad", "--data", str(small_medquad), "--model", str(folder), "--json"]
    plot = tmp_path / "plot.svg"
    result = CliRunner().invoke(typer_app, [*command, "--plot", str(plot), "--per-query", str(tmp_path / "q.jsonl")])
    assert result.exit_code == 0, result.output
    report = json.loads(result.output)
    assert sum(report["matches"].values()) == pytest.approx(1)
    assert "match" in json.loads((tmp_path / "q.jsonl").read_text().splitlines()[0])
    assert plot.stat().st_size > 1000
    cuts = CliRunner().invoke(typer_app, [*command, "--boundaries", "hidden"])
    assert [json.loads(line)["cut"] for line in cuts.output.splitlines()] == ["runs", "windows", "headings"]
    invalid = CliRunner().invoke(typer_app, [*command, "--boundaries", "shown"])
    assert "--boundaries does not accept 'shown'" in str(invalid.exception)


@pytest.mark.parametrize("protocol", ["medquad", "wikisection"])
def test_options_that_hidden_boundaries_do_not_use_are_refused_at_once(protocol, tmp_path):
    command = ["evaluate", protocol, "--data", str(tmp_path / "none"), "--model", "cdv", "--boundaries", "hidden"]
    files = ("run", "qrels", "against", "per-query", "plot", "entities", "passages")
    options = [word for name in files for word in (f"--{name}", str(tmp_path / name))]
    result = CliRunner().invoke(
        typer_app, [*command, *options, "--queries", "question", "--opening", "--fusion", "reciprocal"]
    )
    option_names = ", ".join(["--queries question", "--opening", "--fusion", *(f"--{name}" for name in files)])
    assert isinstance(result.exception, CaprError)
    assert f"it does not use {option_names}. Fix: leave out {option_names}." in str(result.exception)
    with_plot = CliRunner().invoke(typer_app, [*command, "--plot", "a.png", "--limit", "2", "--json"])
    assert "it does not use --plot. Fix: leave out --plot." in str(with_plot.exception)
    assert not list(tmp_path.iterdir())

"""Passages as models see them: alone, under the opening of their document, or shortened."""

import json
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from capr.cli import typer_app
from capr.evaluate import medquad, wikisection
from capr.evaluate.scorers import load as scorer
from capr.models.bi import Bi
from capr.models.ranking import SHORT
from capr.segment import with_labels
from capr.supervise.pairs import VIEWS, LabelledPassage

ARTICLE = {
    "abstract": ("Gout is a form of arthritis.\n", ""),
    "symptom": ("It hurts in the big toe at night.\n", "disease.symptom"),
    "treatment": ("Colchicine is given for it, and rest.\n", "disease.treatment"),
}
STROKE = "A stroke is sudden and needs help."


@pytest.fixture
def articles(tmp_path):
    """WikiSection's JSON: an article with three sections, and one with one section."""
    begin, annotations = 0, []
    for name, (text, label) in ARTICLE.items():
        annotations.append({"begin": begin, "length": len(text), "sectionHeading": name, "sectionLabel": label})
        begin += len(text)
    gout = {"id": "Q1", "title": "Gout", "text": "".join(text for text, _ in ARTICLE.values())}
    section = {"begin": 0, "length": len(STROKE), "sectionHeading": "Onset", "sectionLabel": "disease.symptom"}
    stroke = {"id": "Q2", "title": "Stroke", "text": STROKE, "annotations": [section]}
    path = tmp_path / "wikisection_en_disease_test.json"
    path.write_text(json.dumps([gout | {"annotations": annotations}, stroke]))
    return path


@pytest.fixture(params=["medquad", "wikisection"])
def protocol(request, small_medquad, articles):
    """The name of a command, its data and the task that it loads."""
    if request.param == "medquad":
        return "medquad", small_medquad, medquad.load(small_medquad)
    return "wikisection", articles, wikisection.load(articles)


# --- tasks ---


def test_the_opening_of_the_document_precedes_a_passage(toy):
    openings = {"a": "Gout is an arthritis.", "e": "A stroke is sudden.", "unknown": "Nothing."}
    task = type(toy)(toy.name, toy.passages, toy.queries, openings).with_openings()
    assert task.passages["a"] == "Gout is an arthritis. | colchicine for gout"
    assert task.passages["e"] == "A stroke is sudden. | treatment of a stroke"
    assert {id: task.passages[id] for id in "bcd"} == {id: toy.passages[id] for id in "bcd"}
    assert list(task.passages) == list(toy.passages)
    assert task.queries == toy.queries
    assert (toy.name, task.name) == ("toy", "toy, with openings")


def test_without_openings_only_the_name_changes(toy):
    assert toy.with_openings().passages == toy.passages


def test_protocols_have_openings(protocol):
    name, _, task = protocol
    shown = task.with_openings()
    assert shown.queries == task.queries
    assert [query.candidates for query in shown.queries] == [query.candidates for query in task.queries]
    assert shown.passages.keys() == task.passages.keys()
    for id, text in task.passages.items():
        assert shown.passages[id] == with_labels(text, task.openings[id])
    if name == "medquad":
        first, second = "GARD_0000001-1", "GARD_0000001-2"
        assert task.openings[second] == "Gout is an arthritis - of the toe."
        assert task.openings["GHR_0000002-2"] == "Asthma makes it hard to breathe."
    else:
        first, second = "Q1#0", "Q1#1"
        assert task.openings[second] == "Gout is a form of arthritis."
        assert task.openings["Q1#2"] == "Gout is a form of arthritis. It hurts in the big toe at night."
    assert task.openings[first] == ""
    assert shown.passages[first] == task.passages[first]


def test_models_see_the_opening(protocol, tiny_encoder):
    _, _, task = protocol
    runs = [
        scorer(str(tiny_encoder)).run(view, "tuple", lambda done, total: None) for view in (task, task.with_openings())
    ]
    assert runs[0].keys() == runs[1].keys()
    for bare, shown in zip(*map(dict.values, runs), strict=True):
        assert bare.keys() == shown.keys()
        for id in bare:
            assert (bare[id] == pytest.approx(shown[id], abs=1e-5)) == (not task.openings[id])


def run(*arguments):
    result = CliRunner().invoke(typer_app, ["evaluate", *map(str, arguments)], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_command_adds_openings_and_keeps_the_candidates(protocol, tiny_encoder, tmp_path):
    name, data, task = protocol
    reports, runs, texts = [], [], []
    for number, options in enumerate(([], ["--opening"])):
        files = {kind: tmp_path / f"{kind}{number}" for kind in ("run", "qrels", "passages")}
        paths = [part for kind, path in files.items() for part in (f"--{kind}", path)]
        reports.append(json.loads(run(name, "--data", data, "--model", tiny_encoder, "--json", *options, *paths)))
        lines = [line.split() for line in files["run"].read_text().splitlines()]
        runs.append({(query, id): float(score) for query, _, id, _, score, _ in lines})
        texts.append([json.loads(line)["text"] for line in files["passages"].read_text().splitlines()])
    assert [report["protocol"] for report in reports] == [name, f"{name}, with openings"]
    # the exported texts have no openings, so that training can exclude them by their text
    assert texts == [list(task.passages.values())] * 2
    assert (tmp_path / "qrels0").read_text() == (tmp_path / "qrels1").read_text()
    assert runs[0].keys() == runs[1].keys() == {(query.id, id) for query in task.queries for id in query.candidates}
    for (query, id), score in runs[0].items():
        assert (runs[1][query, id] == pytest.approx(score, abs=1e-4)) == (not task.openings[id])
    assert f"{name}, with openings: " in run(name, "--data", data, "--model", "bm25", "--opening")


# --- views ---

TEXT = LabelledPassage("d", "Gout", "Treatment", "Rest  and\nice help.", opening="Gout is an arthritis.")


def test_views_of_a_passage():
    assert {view: TEXT.view(view) for view in VIEWS} == {
        "text": "Rest  and\nice help.",
        "opening": "Gout is an arthritis. | Rest  and\nice help.",
        "heading": "Treatment | Rest  and\nice help.",
        "title": "Gout | Treatment | Rest  and\nice help.",
    }
    assert {LabelledPassage(text="Rest.").view(view) for view in VIEWS} == {"Rest."}


@pytest.mark.parametrize("view", VIEWS)
def test_a_number_of_words_shortens_the_passage_but_not_its_context(view):
    assert TEXT.view(f"{view} 3") == TEXT.view(view).replace("Rest  and\nice help.", "Rest and ice")
    assert TEXT.view(f"{view} 50") == TEXT.view(view).replace("Rest  and\nice help.", "Rest and ice help.")


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 60))
def test_a_view_has_at_most_its_number_of_words(text, words):
    view = LabelledPassage(text=text).view(f"text {words}").split()
    assert view == text.split()[:words]


def draw_views(family, seed, count=2000):
    rng = random.Random(seed)
    return [family.view(rng) for _ in range(count)]


def test_the_same_seed_draws_the_same_views():
    family = Bi(base="none", views=(("text", 1.0), ("title", 1.0)), short=0.5)
    assert draw_views(family, 3) == draw_views(family, 3) != draw_views(family, 4)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_a_share_of_the_batches_is_short(share):
    views = draw_views(Bi(base="none", views=(("text", 3.0), ("opening", 1.0), ("title", 0.0)), short=share), 1)
    lengths = Counter(int(view.split()[1]) for view in views if " " in view)
    assert sum(lengths.values()) / len(views) == pytest.approx(share, abs=0.03)
    assert set(lengths) == ({*SHORT} if share else set())
    assert all(count == pytest.approx(sum(lengths.values()) / 3, rel=0.2) for count in lengths.values())
    names = Counter(view.split()[0] for view in views)
    assert names["text"] / len(views) == pytest.approx(0.75, abs=0.03)
    assert set(names) == {"text", "opening"}


def test_every_random_view_is_valid():
    family = Bi(base="none", views=tuple((name, 1.0) for name in VIEWS), short=0.5)
    text = LabelledPassage("d", "Gout", "Treatment", "word " * 300, opening="Gout is an arthritis.")
    for view in {*draw_views(family, 1)}:
        name, _, words = view.partition(" ")
        assert text.view(view).split().count("word") == int(words or 300)
        assert text.view(view).startswith({"text": "word", "heading": "Treatment"}.get(name, "Gout"))

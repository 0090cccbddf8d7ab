"""CDV's MedQuAD test: its layout, its candidates, and the published figures of BM25 and TF-IDF."""

import json
import shutil

import pytest

from capr.documents import CaprError
from capr.evaluate import medquad
from capr.evaluate.measures import measure
from capr.evaluate.scorers import load, term_query
from capr.evaluate.task import CANDIDATES, candidates
from capr.evaluate.terms import Terms


def figures(task, model):
    run = load(model).run(task, "tuple", lambda done, total: None)
    return {name: 100 * value for name, value in measure(task, run, model, "tuple").measures.items()}


def near(found, r1, r5, r10, ap):
    expected = {"R@1": r1, "R@5": r5, "R@10": r10, "AP": ap}
    return {name: found[name] for name in expected} == pytest.approx(expected, abs=0.02)


@pytest.mark.data
def test_the_test_set_has_its_size(medquad_task):
    assert len(medquad_task.passages) == 3762
    assert len(medquad_task.asked) == 3293
    assert sum(len(asked.relevant) for asked in medquad_task.asked) == 3481
    assert len({asked.groups["aspect"] for asked in medquad_task.asked}) == 15
    assert {asked.groups["source"] for asked in medquad_task.asked} == {
        "CancerGov", "GARD", "GHR", "NHLBI", "NIDDK", "NINDS", "SeniorHealth",
    }  # fmt: skip
    aspects = [asked.groups["aspect"] for asked in medquad_task.asked]
    assert (aspects.count("information"), aspects.count("complications")) == (787, 10)


@pytest.mark.data
def test_candidates_are_cdvs(medquad_task):
    document = {id: id.rpartition("-")[0] for id in medquad_task.passages}
    members = {}
    for id in medquad_task.passages:
        members.setdefault(document[id], set()).add(id)
    assert max(len(members_of) for members_of in members.values()) < CANDIDATES
    for asked in medquad_task.asked:
        assert len(asked.candidates) == len({*asked.candidates}) <= CANDIDATES
        assert asked.relevant <= {*asked.candidates} <= medquad_task.passages.keys()
        assert {*asked.candidates[: len(asked.relevant)]} == asked.relevant


@pytest.mark.data
def test_the_whole_document_of_the_best_passage_is_among_the_candidates(medquad_task):
    index = Terms(medquad_task.passages)
    members = {}
    for id in medquad_task.passages:
        members.setdefault(id.rpartition("-")[0], set()).add(id)
    for asked in medquad_task.asked[::29]:
        (best,) = index.best(term_query(asked, "tuple"), 1)
        assert members[best.rpartition("-")[0]] <= {*asked.candidates}


@pytest.mark.data
def test_bm25_finds_nine_answers_of_ten_among_its_best_64(medquad_task):
    index = Terms(medquad_task.passages)
    found = wanted = 0
    for asked in medquad_task.asked[::10]:
        top = index.best(term_query(asked, "tuple"), 64)
        found += len(asked.relevant & {*top})
        wanted += len(asked.relevant)
    assert 0.87 < found / wanted < 0.94


@pytest.mark.data
def test_bm25_inside_the_candidates_has_the_published_figures(medquad_task):
    """CDV's paper: 29.48, 86.11 and 48.89."""
    assert near(figures(medquad_task, "bm25"), 29.34, 77.85, 86.11, 48.93)


@pytest.mark.data
def test_bm25_over_everything_has_the_published_figures(medquad_task):
    assert near(figures(medquad_task, "bm25-top"), 29.34, 77.85, 86.11, 48.77)


@pytest.mark.data
def test_tfidf_has_the_published_figures(medquad_task):
    """CDV's paper: 23.83, 82.84 and 42.66."""
    assert near(figures(medquad_task, "tfidf"), 23.61, 74.07, 84.79, 43.35)


def test_a_small_test_set_is_loaded(small_medquad):
    task = medquad.load(small_medquad)
    assert (task.name, len(task.passages), len(task.asked)) == ("medquad", 8, 7)
    assert task.passages["GARD_0000001-1"] == "Gout is an arthritis\n- of the toe.\n"
    assert task.passages["GARD_0000001-2"] == "Symptoms: pain and swelling.\n"
    asked = task.asked[2]
    assert (asked.id, asked.entity, asked.aspect) == ("3", "Gout", "treatment")
    assert asked.question == "What are the treatments for Gout ?"
    assert asked.relevant == {"GARD_0000001-3", "GARD_0000001-4"}
    assert asked.candidates[:2] == ("GARD_0000001-3", "GARD_0000001-4")
    assert asked.groups == {"aspect": "treatment", "source": "GARD"}
    assert task.entities == {"Gout", "Asthma", "Stroke"}


@pytest.mark.parametrize("missing", ["medquad", "cdv/MedQuAD_test_sources.tsv", "cdv/MedQuAD_test_annotations.json"])
def test_missing_data_are_named(small_medquad, tmp_path, missing):
    folder = shutil.copytree(small_medquad, tmp_path / "data")
    path = folder / missing
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(CaprError) as caught:
        medquad.load(folder)
    assert str(path) in str(caught.value)
    assert "Fix: " in str(caught.value)


def test_another_text_than_the_annotated_one_is_refused(small_medquad, tmp_path):
    folder = shutil.copytree(small_medquad, tmp_path / "data")
    path = folder / "cdv" / medquad.ANNOTATIONS
    annotated = json.loads(path.read_text())
    annotated["documents"][1]["length"] += 1
    path.write_text(json.dumps(annotated))
    with pytest.raises(CaprError, match="GHR_0000002 is not the document that was annotated"):
        medquad.load(folder)


def test_candidates_come_in_cdvs_order():
    document = {"d": ["d1", "d2", "d3"], "e": ["e1"], "f": ["f1", "f2"]}
    of = {id: name for name, ids in document.items() for id in ids}
    assert candidates(["f2"], ["d2", "e1", "f2", "f1"], document, of) == ("f2", "d2", "d1", "d3", "e1", "f1")
    assert candidates(["f2"], [], document, of) == ("f2",)


def test_candidates_are_64_at_most():
    document = {"d": [f"d{i}" for i in range(70)], "e": ["e1"]}
    of = {id: name for name, ids in document.items() for id in ids}
    listed = candidates(["e1"], ["d65", "d1"], document, of)
    assert listed == ("e1", "d65", *(f"d{i}" for i in range(62)))

"""CDV's MedQuAD test: its text, its candidates, and the published figures of BM25 and TF-IDF."""

import json
import shutil

import pytest

from capr.documents import CaprError
from capr.evaluate import medquad
from capr.evaluate.measures import measure
from capr.evaluate.scorers import load, term_query
from capr.evaluate.task import CANDIDATES, candidates
from capr.evaluate.term_baselines import Terms


def figures(task, model):
    run = load(model).run(task, "tuple", lambda done, total: None)
    return {name: 100 * value for name, value in measure(task, run, model, "tuple").measures.items()}


def is_close(measures, r1, r5, r10, ap):
    expected = {"R@1": r1, "R@5": r5, "R@10": r10, "AP": ap}
    return {name: measures[name] for name in expected} == pytest.approx(expected, abs=0.02)


@pytest.mark.data
def test_the_test_set_has_its_size(medquad_task):
    assert len(medquad_task.passages) == 3762
    assert len(medquad_task.queries) == 3293
    assert sum(len(query.relevant) for query in medquad_task.queries) == 3481
    assert len({query.groups["aspect"] for query in medquad_task.queries}) == 15
    sources = {query.groups["source"] for query in medquad_task.queries}
    assert sources == {"CancerGov", "GARD", "GHR", "NHLBI", "NIDDK", "NINDS", "SeniorHealth"}
    aspects = [query.groups["aspect"] for query in medquad_task.queries]
    assert (aspects.count("information"), aspects.count("complications")) == (787, 10)


@pytest.mark.data
def test_candidates_agree_with_cdv(medquad_task):
    document_of = {id: id.rpartition("-")[0] for id in medquad_task.passages}
    members = {}
    for id in medquad_task.passages:
        members.setdefault(document_of[id], set()).add(id)
    assert max(len(ids) for ids in members.values()) < CANDIDATES
    for query in medquad_task.queries:
        assert len(query.candidates) == len({*query.candidates}) <= CANDIDATES
        assert query.relevant <= {*query.candidates} <= medquad_task.passages.keys()
        assert {*query.candidates[: len(query.relevant)]} == query.relevant


@pytest.mark.data
def test_candidates_include_the_document_of_the_best_passage(medquad_task):
    index = Terms(medquad_task.passages)
    members = {}
    for id in medquad_task.passages:
        members.setdefault(id.rpartition("-")[0], set()).add(id)
    for query in medquad_task.queries[::29]:
        (best,) = index.best(term_query(query, "tuple"), 1)
        assert members[best.rpartition("-")[0]] <= {*query.candidates}


@pytest.mark.data
def test_bm25_has_nine_in_ten_relevant_passages_in_its_best_64(medquad_task):
    index = Terms(medquad_task.passages)
    hits = relevant = 0
    for query in medquad_task.queries[::10]:
        top = index.best(term_query(query, "tuple"), 64)
        hits += len(query.relevant & {*top})
        relevant += len(query.relevant)
    assert 0.87 < hits / relevant < 0.94


@pytest.mark.data
def test_bm25_over_candidates_has_the_published_figures(medquad_task):
    """CDV's paper: 29.48, 86.11 and 48.89."""
    assert is_close(figures(medquad_task, "bm25"), 29.34, 77.85, 86.11, 48.93)


@pytest.mark.data
def test_bm25_over_all_passages_has_the_published_figures(medquad_task):
    assert is_close(figures(medquad_task, "bm25-top"), 29.34, 77.85, 86.11, 48.77)


@pytest.mark.data
def test_tfidf_has_the_published_figures(medquad_task):
    """CDV's paper: 23.83, 82.84 and 42.66."""
    assert is_close(figures(medquad_task, "tfidf"), 23.61, 74.07, 84.79, 43.35)


def test_a_small_test_set_is_loaded(small_medquad):
    task = medquad.load(small_medquad)
    assert (task.name, len(task.passages), len(task.queries)) == ("medquad", 8, 7)
    assert task.passages["GARD_0000001-1"] == "Gout is an arthritis\n- of the toe.\n"
    assert task.passages["GARD_0000001-2"] == "Symptoms: pain and swelling.\n"
    query = task.queries[2]
    assert (query.id, query.entity, query.aspect) == ("3", "Gout", "treatment")
    assert query.question == "What are the treatments for Gout ?"
    assert query.relevant == {"GARD_0000001-3", "GARD_0000001-4"}
    assert query.candidates[:2] == ("GARD_0000001-3", "GARD_0000001-4")
    assert query.groups == {"aspect": "treatment", "source": "GARD"}
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


def test_a_text_that_is_not_the_annotated_one_is_refused(small_medquad, tmp_path):
    folder = shutil.copytree(small_medquad, tmp_path / "data")
    path = folder / "cdv" / medquad.ANNOTATIONS
    annotated = json.loads(path.read_text())
    annotated["documents"][1]["length"] += 1
    path.write_text(json.dumps(annotated))
    with pytest.raises(CaprError, match="GHR_0000002 is not the document that was annotated"):
        medquad.load(folder)


def test_candidates_come_in_cdvs_order():
    members = {"d": ["d1", "d2", "d3"], "e": ["e1"], "f": ["f1", "f2"]}
    document_of = {id: name for name, ids in members.items() for id in ids}
    assert candidates(["f2"], ["d2", "e1", "f2", "f1"], members, document_of) == ("f2", "d2", "d1", "d3", "e1", "f1")
    assert candidates(["f2"], [], members, document_of) == ("f2",)


def test_there_are_at_most_64_candidates():
    members = {"d": [f"d{i}" for i in range(70)], "e": ["e1"]}
    document_of = {id: name for name, ids in members.items() for id in ids}
    candidate_ids = candidates(["e1"], ["d65", "d1"], members, document_of)
    assert candidate_ids == ("e1", "d65", *(f"d{i}" for i in range(62)))

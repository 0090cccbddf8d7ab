"""Sections of articles, with titles and labels as queries."""

import json

import pytest

from capr.documents import CaprError
from capr.evaluate.measures import measure
from capr.evaluate.scorers import load as scorer
from capr.evaluate.task import CANDIDATES
from capr.evaluate.wikisection import load
from capr.segment.aspects import heading
from capr.supervise.split import is_test

TEXT = (
    "Gout is a form of arthritis.\n"
    "It hurts in the big toe at night.\n"
    "Colchicine is given for it.\n"
    "Famous people had it, kings too.\n"
    "Allopurinol is for later on.\n"
)
LINES = TEXT.splitlines(keepends=True)
LABELS = ["abstract", "symptom", "treatment", "other", "treatment"]


def spans():
    begin = 0
    for line in LINES:
        yield begin, len(line)
        begin += len(line)


def write_json(path, value):
    path.write_text(json.dumps(value))
    return path


def relevant_sections(task):
    return {(query.entity, query.groups["aspect"]): sorted(query.relevant) for query in task.queries}


@pytest.fixture
def wikisection(tmp_path):
    annotations = [
        {"begin": begin, "length": length, "sectionHeading": name.title(), "sectionLabel": f"disease.{name}"}
        for (begin, length), name in zip(spans(), LABELS, strict=True)
    ]
    annotations[0]["sectionLabel"] = ""
    article = {"id": "Q1", "type": "DISEASE", "title": "Gout", "text": TEXT, "annotations": annotations}
    other = {"id": "Q2", "title": "Stroke", "text": "A stroke is sudden.", "annotations": []}
    other["annotations"] = [{"begin": 0, "length": 19, "sectionHeading": "Onset", "sectionLabel": "disease.symptom"}]
    return write_json(tmp_path / "wikisection_en_disease_test.json", [article, other])


def test_queries_of_wikisection_json_have_title_and_label(wikisection):
    task = load(wikisection)
    assert (task.name, len(task.passages)) == ("wikisection", 6)
    assert relevant_sections(task) == {
        ("Gout", "information"): ["Q1#0"],
        ("Gout", "symptom"): ["Q1#1"],
        ("Gout", "treatment"): ["Q1#2", "Q1#4"],
        ("Stroke", "symptom"): ["Q2#0"],
    }
    assert task.passages["Q1#2"] == "Colchicine is given for it."
    for query in task.queries:
        assert heading(query.aspect) == heading(query.groups["aspect"])
        assert query.relevant <= {*query.candidates}


def test_a_folder_of_files_works_too(wikisection):
    assert relevant_sections(load(wikisection.parent)) == relevant_sections(load(wikisection))


def test_queries_of_wikisectionqa_json_have_entity_and_aspect(tmp_path):
    annotations = [
        {
            "class": "EntityAspectAnnotation",
            "source": "GOLD",
            "begin": begin,
            "length": length,
            "id": f"Q1-{number}",
            "entity": "Gouty arthritis",
            "entityId": "Q1",
            "aspect": name,
        }
        for number, ((begin, length), name) in enumerate(zip(spans(), LABELS, strict=True))
    ]
    annotations[0]["aspect"] = "information"
    document = {"class": "Document", "id": "Q1", "title": "Gout", "begin": 0, "length": len(TEXT), "text": TEXT}
    data = {"name": "WikiSection", "language": "en", "documents": [document | {"annotations": annotations}]}
    task = load(write_json(tmp_path / "WikiSectionQA_test.json", data | {"queries": []}))
    assert relevant_sections(task) == {
        ("Gouty arthritis", "information"): ["Q1#0"],
        ("Gouty arthritis", "symptom"): ["Q1#1"],
        ("Gouty arthritis", "treatment"): ["Q1#2", "Q1#4"],
    }
    assert len(task.passages) == 5


def test_a_fifth_of_json_lines_is_the_test_and_sections_include_subsections(tmp_path):
    names = [f"Disease {number}" for number in range(50)]
    title, other = next(filter(is_test, names)), next(name for name in names if not is_test(name))
    sections = [
        {"heading": "Treatment", "label": "disease.treatment", "text": "Rest is a treatment."},
        {"heading": "Treatment | Drugs", "label": "disease.medication", "text": "Drugs are one too."},
        {"heading": "History", "label": "disease.history", "text": "Known since long ago."},
        {"heading": "See also", "label": "disease.other", "text": "Other diseases of toes."},
    ]
    about = {"abstract": "This is a disease.", "sections": sections}
    articles = [{"id": name, "title": name, **about} for name in (title, other)]
    path = tmp_path / "articles.jsonl"
    path.write_text("".join(json.dumps(article) + "\n" for article in articles))
    task = load(tmp_path)
    assert {entity for entity, _ in relevant_sections(task)} == {title}
    assert sorted(aspect for _, aspect in relevant_sections(task)) == ["history", "information", "treatment"]
    (treatment,) = relevant_sections(task)[title, "treatment"]
    assert "Rest is a treatment." in task.passages[treatment]
    assert "Drugs are one too." in task.passages[treatment]
    assert len(task.passages) == 4


def test_short_sections_are_not_passages(tmp_path):
    article = {"id": "Q1", "title": "Gout", "text": "Too short", "annotations": []}
    article["annotations"] = [{"begin": 0, "length": 9, "sectionHeading": "A", "sectionLabel": "disease.symptom"}]
    with pytest.raises(CaprError, match=r"has a label\. Fix: "):
        load(write_json(tmp_path / "a.json", [article]))


def test_a_folder_without_articles_is_reported(tmp_path):
    (tmp_path / "aliases.json").write_text("{}")
    with pytest.raises(CaprError, match=r"has no articles\. Fix: "):
        load(tmp_path)


@pytest.mark.data
def test_the_diseases_of_wikipedia(data):
    task = load(data / "wikipedia_diseases")
    assert (len(task.passages), len(task.queries)) == (2497, 2232)
    for query in task.queries:
        assert len(query.candidates) <= CANDIDATES
        assert query.relevant <= {*query.candidates}
    measures = measure(task, scorer("bm25").run(task, "tuple", lambda done, total: None), "bm25", "tuple").measures
    assert 100 * measures["R@1"] == pytest.approx(26.73, abs=0.02)
    assert 100 * measures["R@10"] == pytest.approx(76.05, abs=0.02)

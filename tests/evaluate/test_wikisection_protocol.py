"""Sections of articles asked for by title and label."""

import json

import pytest

from capr.annotate.query import heading
from capr.documents import CaprError
from capr.evaluate.measures import measure
from capr.evaluate.scorers import load as scorer
from capr.evaluate.split import is_test
from capr.evaluate.task import CANDIDATES
from capr.evaluate.wikisection import load

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


def written(path, value):
    path.write_text(json.dumps(value))
    return path


def lists(task):
    return {(asked.entity, asked.groups["aspect"]): sorted(asked.relevant) for asked in task.asked}


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
    return written(tmp_path / "wikisection_en_disease_test.json", [article, other])


def test_wikisection_json_is_asked_by_title_and_label(wikisection):
    task = load(wikisection)
    assert (task.name, len(task.passages)) == ("wikisection", 6)
    assert lists(task) == {
        ("Gout", "information"): ["Q1#0"],
        ("Gout", "symptom"): ["Q1#1"],
        ("Gout", "treatment"): ["Q1#2", "Q1#4"],
        ("Stroke", "symptom"): ["Q2#0"],
    }
    assert task.passages["Q1#2"] == "Colchicine is given for it."
    for asked in task.asked:
        assert heading(asked.aspect) == heading(asked.groups["aspect"])
        assert asked.relevant <= {*asked.candidates}


def test_a_folder_that_has_a_file_is_as_good(wikisection):
    assert lists(load(wikisection.parent)) == lists(load(wikisection))


def test_wikisectionqa_json_is_asked_by_entity_and_aspect(tmp_path):
    annotations = [
        {"class": "EntityAspectAnnotation", "source": "GOLD", "begin": begin, "length": length, "id": f"Q1-{place}",
         "entity": "Gouty arthritis", "entityId": "Q1", "aspect": name}
        for place, ((begin, length), name) in enumerate(zip(spans(), LABELS, strict=True))
    ]  # fmt: skip
    annotations[0]["aspect"] = "information"
    document = {"class": "Document", "id": "Q1", "title": "Gout", "begin": 0, "length": len(TEXT), "text": TEXT}
    data = {"name": "WikiSection", "language": "en", "documents": [document | {"annotations": annotations}]}
    task = load(written(tmp_path / "WikiSectionQA_test.json", data | {"queries": []}))
    assert lists(task) == {
        ("Gouty arthritis", "information"): ["Q1#0"],
        ("Gouty arthritis", "symptom"): ["Q1#1"],
        ("Gouty arthritis", "treatment"): ["Q1#2", "Q1#4"],
    }
    assert len(task.passages) == 5


def test_of_json_lines_a_fifth_is_the_test_and_subsections_belong_to_their_section(tmp_path):
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
    assert {entity for entity, _ in lists(task)} == {title}
    assert sorted(aspect for _, aspect in lists(task)) == ["history", "information", "treatment"]
    (treatment,) = lists(task)[title, "treatment"]
    assert "Rest is a treatment." in task.passages[treatment]
    assert "Drugs are one too." in task.passages[treatment]
    assert len(task.passages) == 4


def test_short_sections_are_no_passages(tmp_path):
    article = {"id": "Q1", "title": "Gout", "text": "Too short", "annotations": []}
    article["annotations"] = [{"begin": 0, "length": 9, "sectionHeading": "A", "sectionLabel": "disease.symptom"}]
    with pytest.raises(CaprError, match=r"has a label\. Fix: "):
        load(written(tmp_path / "a.json", [article]))


def test_a_folder_without_articles_is_told(tmp_path):
    (tmp_path / "aliases.json").write_text("{}")
    with pytest.raises(CaprError, match=r"has no articles\. Fix: "):
        load(tmp_path)


@pytest.mark.data
def test_the_diseases_of_wikipedia(data):
    task = load(data / "wikipedia_diseases")
    assert (len(task.passages), len(task.asked)) == (2497, 2232)
    for asked in task.asked:
        assert len(asked.candidates) <= CANDIDATES
        assert asked.relevant <= {*asked.candidates}
    found = measure(task, scorer("bm25").run(task, "tuple", lambda done, total: None), "bm25", "tuple").measures
    assert 100 * found["R@1"] == pytest.approx(26.73, abs=0.02)
    assert 100 * found["R@10"] == pytest.approx(76.05, abs=0.02)

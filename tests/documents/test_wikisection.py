"""WikiSection's list of articles and TeXoo's data sets."""

import gzip
import json

import pytest

import capr

TEXT = "Gout is arthritis.\r\n\tPain \u2013 \u201csevere\u201d\u00a0🩺.\nColchicine helps.\n"
ARTICLE = {
    "id": "http://www.wikidata.org/entity/Q133087",
    "type": "DISEASE",
    "title": "Gout",
    "abstract": "Gout is a form of arthritis.",
    "text": TEXT,
    "annotations": [
        {"begin": 0, "length": 40, "sectionHeading": "Signs and symptoms", "sectionLabel": "disease.symptom"},
        {"begin": 40, "length": 18, "sectionHeading": "Treatment", "sectionLabel": "disease.treatment"},
    ],
}
LAST = {"id": "z", "text": "last", "annotations": [{"begin": 0, "length": 4, "sectionHeading": "H"}]}


@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_list_of_articles_is_read(read, ascii_only):
    content = json.dumps([ARTICLE, LAST], ensure_ascii=ascii_only, indent=1)
    (gout, last), problems, notices = read("wikisection_en_disease_test.json", content)
    assert (gout.id, gout.title, gout.text) == (ARTICLE["id"], "Gout", TEXT)
    assert gout.metadata == {
        "source": "wikisection_en_disease_test.json",
        "file": "wikisection_en_disease_test.json",
        "type": "DISEASE",
        "abstract": "Gout is a form of arthritis.",
    }
    assert [(gout[section.span], section.value) for section in gout.annotated("section")] == [
        (TEXT[:40], {"heading": "Signs and symptoms", "label": "disease.symptom"}),
        ("Colchicine helps.\n", {"heading": "Treatment", "label": "disease.treatment"}),
    ]
    assert last.text == "last"
    assert not problems
    assert not notices


def test_a_data_set_of_documents_is_read(tmp_path):
    annotation = {
        "class": "EntityAspectAnnotation",
        "source": "GOLD",
        "begin": 0,
        "length": 18,
        "id": "GARD_1-1",
        "entity": "Gout",
        "entityId": "Q133087",
        "aspect": "information",
    }
    record = {"class": "Document", "id": "GARD_1", "language": "en", "begin": 0, "length": 18, "text": TEXT}
    data = {"name": "MedQuAD", "language": "en", "documents": [{**record, "annotations": [annotation]}, LAST]}
    path = tmp_path / "test.json"
    path.write_text(json.dumps(data, indent=2).replace('":', '" :'))
    stream = capr.read(path)
    document, last = stream
    assert stream.formats == {"wikisection": 2}
    assert (document.id, document.metadata["language"], last.id) == ("GARD_1", "en", "z")
    (section,) = document.annotated("section")
    assert document[section.span] == "Gout is arthritis."
    assert section.value == {
        "id": "GARD_1-1",
        "entity": "Gout",
        "entity_id": "Q133087",
        "aspect": "information",
    }


def test_a_single_article_is_not_lost(read):
    documents, problems, _ = read("gout.json", json.dumps(ARTICLE))
    assert problems or [document.text for document in documents] == [TEXT]


def test_articles_line_by_line_are_not_lost(read):
    documents, problems, _ = read("gout.jsonl", f"{json.dumps(ARTICLE)}\n{json.dumps(LAST)}\n")
    assert [document.text for document in documents] == [TEXT, "last"]
    assert not problems


def test_a_format_can_be_forced(read):
    (document,), *_ = read("a.dat", '[{"id": "a", "text": "x"}]', format="wikisection")
    assert (document.id, document.text) == ("a", "x")


@pytest.mark.parametrize("content", ["[]", "{}", '{"docs": [{"text": "x"}]}', '{"documents": {"a": {"text": "x"}}}'])
def test_a_file_without_articles_is_reported(read, content):
    documents, problems, notices = read("a.json", content, format="wikisection")
    assert documents == []
    assert problems or notices


@pytest.mark.parametrize("record", [5, None, "x", [], {"id": "a"}, {"id": "a", "text": None}, {"text": ["x"]}])
def test_a_record_without_text_is_reported_and_the_rest_is_read(read, record):
    (document,), (problem,), _ = read("a.json", json.dumps([record, LAST]))
    assert document.text == "last"
    assert (problem.fact, problem.record) == ("the record has no text", 1)


@pytest.mark.parametrize(
    ("annotations", "fact"),
    [
        ([{"begin": 0, "length": 99}], "[0, 99) is outside the text of 4 characters"),
        ([{"begin": -1, "length": 2}], "[-1, 1) is outside"),
        ([{"begin": 2, "length": -1}], "[2, 1) is outside"),
        ([{"begin": 0}], "no usable offsets"),
        ([{"begin": None, "length": 1}], "no usable offsets"),
        ([{"begin": "x", "length": 1}], "no usable offsets"),
        ([None], "no usable offsets"),
        (5, ""),
        (True, ""),
    ],
)
def test_a_bad_section_is_reported_and_the_rest_is_read(read, annotations, fact):
    record = {"id": "a", "text": "text", "annotations": annotations}
    documents, (problem,), _ = read("a.json", json.dumps([record, LAST]))
    assert documents[-1].text == "last"
    assert fact in problem.fact
    assert problem.record in ("a", 1)


def test_a_release_without_texts_is_reported(read):
    (document,), (problem,), _ = read("a.json", json.dumps([{**ARTICLE, "text": ""}, LAST]))
    assert document.text == "last"
    assert (problem.fact, problem.record) == ("the text is blank but has annotated sections", ARTICLE["id"])


FIRST = {**LAST, "id": "first"}
TWO = json.dumps([FIRST, LAST])


@pytest.mark.parametrize(
    ("content", "fact"),
    [
        (TWO[:-30], "broken JSON"),
        (TWO.replace('"last", "ann', '"la\nst", "ann').replace('"la\nst"', '"last"', 1), "broken JSON"),
        (TWO.replace("}, {", "} {"), "broken JSON"),
    ],
)
def test_the_records_before_broken_json_are_read(read, content, fact):
    (document,), (problem,), _ = read("a.json", content)
    assert document.id == "first"
    assert fact in problem.fact
    assert problem.record == 2


def test_an_undefined_byte_affects_only_its_record(read):
    content = json.dumps([FIRST, {"id": "bad", "text": "@"}, LAST]).encode().replace(b"@", b"\x81")
    documents, (problem,), _ = read("a.json", content)
    assert [document.id for document in documents] == ["first", "z"]
    assert "byte 0x81" in problem.fact
    assert problem.record == "bad"


def test_half_a_surrogate_pair_is_reported_not_replaced(read):
    content = json.dumps([FIRST, {"id": "bad", "text": "x \ud83d"}, LAST])
    documents, (problem,), _ = read("a.json", content)
    assert [document.id for document in documents] == ["first", "z"]
    assert "half of a surrogate pair" in problem.fact


@pytest.mark.parametrize(
    ("name", "content", "fact"),
    [
        ("a.json.gz", gzip.compress(TWO.encode(), mtime=0)[:-12], "gzip"),
        ("a.json", TWO.encode("utf-16")[:-1], "it begins as utf-16-le but is not"),
    ],
)
def test_damaged_files_are_reported(read, name, content, fact):
    _, (problem,), _ = read(name, content, format="wikisection")
    assert fact in problem.fact

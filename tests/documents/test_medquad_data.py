"""All of MedQuAD, and the CDV paper's test set rebuilt from it exactly."""

import json
from xml.etree import ElementTree

import pytest

import capr
from capr.evaluate.medquad import layout

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def medquad(data):
    stream = capr.read(data / "medquad")
    documents = [document for document in stream if document.metadata["file"].endswith(".xml")]
    return stream, documents


def test_every_file_is_read(medquad):
    stream, documents = medquad
    assert stream.errors == 0
    assert len(documents) == 5497
    assert len({document.id for document in documents}) == 5497
    assert stream.formats == {"medquad": 5497, "text": 2}  # the licence and the readme


def test_every_answer_keeps_every_character(data, medquad):
    """Compare with the standard library's XML parser."""
    _, documents = medquad
    by_file = {document.metadata["file"]: document for document in documents}
    answer_count = 0
    for path in (data / "medquad").glob("*/*.xml"):
        answers = [
            element.text
            for element in ElementTree.parse(path).iter()
            if element.tag.lower() == "answer" and (element.text or "").strip()
        ]
        document = by_file[f"{path.parent.name}/{path.name}"]
        assert [document[section.span] for section in document.annotated("section")] == answers
        answer_count += len(answers)
    assert answer_count == 16423


def test_the_cdv_test_set_is_rebuilt_exactly(data, medquad):
    _, documents = medquad
    lines = (data / "cdv" / "MedQuAD_test_sources.tsv").read_text().splitlines()
    sources = {"/".join(line.split("\t")[0].split("/")[-2:]) for line in lines if line.strip()}
    test_documents = [document for document in documents if document.metadata["file"] in sources]
    rebuilt = {document.id: document for document in layout(test_documents)}
    answers = {f"{d.metadata['source']}_{d.metadata['number']}": d for d in test_documents}
    gold = json.loads((data / "cdv" / "MedQuAD_test_annotations.json").read_text())
    assert len(gold["documents"]) == len(rebuilt) == 1111
    count = 0
    for document in gold["documents"]:
        rebuilt_document, source = rebuilt[document["id"]], answers[document["id"]]
        assert len(rebuilt_document.text) == document["length"]
        assert rebuilt_document.title == document["title"]
        sections = rebuilt_document.annotated("section")
        assert len(sections) == len(document["annotations"])
        for section, annotation, answer in zip(
            sections, document["annotations"], source.annotated("section"), strict=True
        ):
            assert section.span.begin == annotation["begin"]
            assert section.span.end - section.span.begin == annotation["length"]
            assert section.value["id"] == annotation["id"]
            assert rebuilt_document[section.span].split() == source[answer.span].split()
            count += 1
    assert count == 3762

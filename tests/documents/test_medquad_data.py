"""All of MedQuAD, and the CDV paper's test set rebuilt from it to the character."""

import json
from xml.etree import ElementTree

import pytest

import capr
from capr.evaluate.medquad import layout

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def medquad(data):
    reading = capr.read(data / "medquad")
    documents = [document for document in reading if document.metadata["file"].endswith(".xml")]
    return reading, documents


def test_every_file_is_read(medquad):
    reading, documents = medquad
    assert reading.errors == 0
    assert len(documents) == 5497
    assert len({document.id for document in documents}) == 5497
    assert reading.formats == {"medquad": 5497, "text": 2}  # the licence and the readme


def test_every_answer_is_kept_to_the_character(data, medquad):
    """Against a plain XML parser that knows nothing of documents."""
    _, documents = medquad
    by_file = {document.metadata["file"]: document for document in documents}
    answered = 0
    for path in (data / "medquad").glob("*/*.xml"):
        answers = [
            element.text
            for element in ElementTree.parse(path).iter()
            if element.tag.lower() == "answer" and (element.text or "").strip()
        ]
        document = by_file[f"{path.parent.name}/{path.name}"]
        assert [document[section.span] for section in document.annotated("section")] == answers
        answered += len(answers)
    assert answered == 16423


def test_the_cdv_test_set_is_rebuilt_exactly(data, medquad):
    _, documents = medquad
    lines = (data / "cdv" / "MedQuAD_test_sources.tsv").read_text().splitlines()
    sources = {"/".join(line.split("\t")[0].split("/")[-2:]) for line in lines if line.strip()}
    chosen = [document for document in documents if document.metadata["file"] in sources]
    rebuilt = {document.id: document for document in layout(chosen)}
    answers = {f"{d.metadata['source']}_{d.metadata['number']}": d for d in chosen}
    gold = json.loads((data / "cdv" / "MedQuAD_test_annotations.json").read_text())
    assert len(gold["documents"]) == len(rebuilt) == 1111
    passages = 0
    for document in gold["documents"]:
        ours, source = rebuilt[document["id"]], answers[document["id"]]
        assert len(ours.text) == document["length"]
        assert ours.title == document["title"]
        sections = ours.annotated("section")
        assert len(sections) == len(document["annotations"])
        for section, annotation, answer in zip(
            sections, document["annotations"], source.annotated("section"), strict=True
        ):
            assert section.span.begin == annotation["begin"]
            assert section.span.end - section.span.begin == annotation["length"]
            assert section.value["id"] == annotation["id"]
            assert ours[section.span].split() == source[answer.span].split()
            passages += 1
    assert passages == 3762

"""BioASQ's question files."""

import gzip
import json

import pytest

import capr

SNIPPET = {
    "offsetInBeginSection": 0,
    "offsetInEndSection": 72,
    "text": "Durvalumab in NSCLC: \u226525% PD-L1+\u00a0🩺.",
    "beginSection": "title",
    "document": "http://www.ncbi.nlm.nih.gov/pubmed/29140105",
    "endSection": "title",
}
QUESTION = {
    "body": "Is durvalumab \u201cused\u201d for lung cancer\u00a0treatment?",
    "documents": ["http://www.ncbi.nlm.nih.gov/pubmed/29140105"],
    "type": "yesno",
    "id": "5c5607aa07647bbc4b00000e",
    "snippets": [SNIPPET],
    "exact_answer": "yes",
    "ideal_answer": ["Yes, durvalumab is used."],
}
LAST = {"id": "last", "body": "Which gene?", "type": "factoid"}


def bioasq_file(*questions) -> str:
    return json.dumps({"questions": list(questions)}, indent=2)


def test_a_question_is_a_document_with_its_gold_answers_as_metadata(tmp_path):
    path = tmp_path / "BioASQ-task7bPhaseB-testset1.json"
    path.write_text(bioasq_file(QUESTION, LAST).replace("\n", " \r\n"))
    stream = capr.read(path)
    question, last = stream
    assert stream.formats == {"bioasq": 2}
    assert (question.id, question.title) == ("5c5607aa07647bbc4b00000e", "")
    assert question.text == "Is durvalumab “used” for lung cancer\u00a0treatment?"
    assert question.metadata == {
        "source": path.name,
        "file": path.name,
        "documents": ["http://www.ncbi.nlm.nih.gov/pubmed/29140105"],
        "type": "yesno",
        "snippets": [SNIPPET],
        "exact_answer": "yes",
        "ideal_answer": ["Yes, durvalumab is used."],
    }
    assert (last.id, last.metadata["type"]) == ("last", "factoid")
    assert (stream.errors, stream.problems) == (0, [])


def test_a_test_set_without_gold_answers_is_read(read):
    documents, problems, _ = read("testset.json", bioasq_file({"id": "a", "body": "Q?"}, {"body": "no id?"}))
    assert [document.id for document in documents] == ["a", "testset.json#2"]
    assert not problems


def test_a_format_can_be_forced(read):
    (document,), *_ = read("a.dat", '{"questions": [{"id": "a", "body": "Q?"}]}', format="bioasq")
    assert document.text == "Q?"


@pytest.mark.parametrize("question", [5, None, "x", [], {"id": "a"}, {"id": "a", "body": None}, {"body": ["x"]}])
def test_a_question_without_body_is_reported_and_the_rest_is_read(read, question):
    (document,), (problem,), _ = read("a.json", bioasq_file(question, LAST))
    assert document.id == "last"
    assert (problem.fact, problem.record) == ("the question has no body", 1)


def test_a_repeated_id_is_reported(read):
    documents, (problem,), _ = read("a.json", bioasq_file(QUESTION, QUESTION, LAST))
    assert [document.id for document in documents] == [QUESTION["id"], "last"]
    assert "was read before" in problem.fact


def test_an_empty_body_is_a_notice(read):
    documents, problems, (notice,) = read("a.json", bioasq_file({"id": "a", "body": " "}, LAST))
    assert len(documents) == 2
    assert not problems
    assert (notice.fact, notice.record) == ("the document is empty", "a")


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        "[]",
        '{"questions": []}',
        '{"questions": {"a": {"body": "x"}}}',
        '[{"id": "1", "body": "x"}]',
        '{"data": {"questions": [{"body": "x"}]}}',
    ],
)
def test_a_file_without_questions_is_reported(read, content):
    documents, problems, notices = read("a.json", content, format="bioasq")
    assert problems or notices or documents


def test_zero_is_an_id_and_false_is_an_answer(read):
    (document,), *_ = read("a.json", bioasq_file({"id": 0, "body": "Q?", "exact_answer": False}))
    assert document.id == "0"
    assert document.metadata["exact_answer"] is False


TWO = bioasq_file({"id": "first", "body": "Q?"}, LAST)


@pytest.mark.parametrize(
    ("content", "record"),
    [
        (TWO[:-30], 2),
        (TWO.replace('"last"', "'last'"), 2),
        (TWO.replace("Which gene", "Which\ngene"), 2),
        (TWO + "]", 3),
        ('{"questions": [{"body": "x', 1),
    ],
)
def test_the_records_before_broken_json_are_read(read, content, record):
    documents, (problem,), _ = read("a.json", content)
    assert len(documents) == record - 1
    assert "broken JSON" in problem.fact
    assert problem.record == record


def test_an_undefined_byte_affects_only_its_record(read):
    content = (
        bioasq_file({"id": "first", "body": "Q?"}, {"id": "bad", "body": "@"}, LAST).encode().replace(b"@", b"\x81")
    )
    documents, (problem,), _ = read("a.json", content)
    assert [document.id for document in documents] == ["first", "last"]
    assert "byte 0x81" in problem.fact
    assert problem.record == "bad"


def test_half_a_surrogate_pair_is_reported_not_replaced(read):
    documents, (problem,), _ = read("a.json", bioasq_file({"id": "bad", "body": "x \ud83d"}, LAST))
    assert [document.id for document in documents] == ["last"]
    assert "half of a surrogate pair" in problem.fact


def test_windows_1252_is_read_with_a_notice(read):
    content = '{"questions": [{"id": "a", "body": "38° – café?"}]}'.encode("cp1252")
    (document,), problems, (notice,) = read("a.json", content)
    assert document.text == "38° – café?"
    assert not problems
    assert "Windows-1252" in notice.fact


def test_truncated_gzip_is_reported(read):
    _, (problem,), _ = read("a.json.gz", gzip.compress(TWO.encode())[:-12], format="bioasq")
    assert "gzip" in problem.fact

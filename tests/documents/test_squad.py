"""SQuAD v1 and v2, and emrQA's data.json."""

import gzip
import json

import pytest

import capr

CONTEXT = "No fever.\r\n\tPain \u2013 \u201csevere\u201d\u00a0🩺 since May."
LAST = {"context": "last", "qas": []}


def answer(words: str, begin: int | None = None) -> dict:
    return {"text": words, "answer_start": CONTEXT.index(words) if begin is None else begin}


def squad_file(*paragraphs, title: str = "Gout", version: str = "1.1") -> str:
    return json.dumps({"version": version, "data": [{"title": title, "paragraphs": list(paragraphs)}]})


def question(**fields) -> dict:
    return {"context": CONTEXT, "qas": [{"id": "q1", "question": "Since when?", **fields}]}


def test_squad_version_1_is_read(tmp_path):
    qas = [
        {"id": "56be", "question": "Since when?", "answers": [answer("May"), answer("since May")]},
        {"id": "56bf", "question": "How bad?", "answers": [answer("“severe”\u00a0🩺")]},
    ]
    path = tmp_path / "dev-v1.1.json"
    path.write_text(squad_file({"context": CONTEXT, "qas": qas}, LAST))
    stream = capr.read(path)
    first, last = stream
    assert stream.formats == {"squad": 2}
    assert (first.id, first.title, first.text) == ("Gout#1", "Gout", CONTEXT)
    assert first.metadata == {"source": path.name, "file": path.name}
    when, how = first.annotations
    assert (when.kind, first[when.span]) == ("question", CONTEXT)
    assert (when.value["id"], when.value["question"]) == ("56be", "Since when?")
    assert [first.text[a["begin"] : a["end"]] for a in when.value["answers"]] == ["May", "since May"]
    assert [first.text[a["begin"] : a["end"]] for a in how.value["answers"]] == ["“severe”\u00a0🩺"]
    assert (last.id, last.annotations) == ("Gout#2", ())
    assert (stream.errors, stream.problems) == (0, [])


def test_squad_version_2_has_unanswerable_questions(read):
    plausible = [answer("May")]
    impossible = question(is_impossible=True, answers=[], plausible_answers=plausible)
    (document, possible), problems, notices = read(
        "a.json", squad_file(impossible, question(is_impossible=False, answers=[answer("May")]), version="v2.0")
    )
    (question_annotation,) = document.annotations
    assert question_annotation.value["is_impossible"] is True
    assert question_annotation.value["answers"] == []
    assert possible.annotations[0].value["is_impossible"] is False
    assert not problems
    assert "May" in str(question_annotation.value) or notices  # the plausible answers are not lost silently


NOTE = [
    "HISTORY :\n",
    "The patient takes \n",
    "aspirin 81 mg daily .\n",
    "Denies pain .\n",
    "aspirin 81 mg daily .",
]


def emrqa(*answers, title: str = "medication") -> dict:
    qa = {
        "id": [[["What dose?", "What |x|?"]], "MedicationEvent (|x|)"],
        "question": ["What dose?", "Which dose?"],
        "answers": list(answers),
    }
    return {"paragraphs": [{"note_id": "105", "context": NOTE, "qas": [qa]}], "title": title}


SINGLE = {
    "answer_entity_type": "single",
    "answer_start": [3, 1],
    "evidence": "aspirin 81 mg daily .",
    "evidence_start": 3,
    "text": "81 mg",
}


def evidence_of(document) -> list[str]:
    return [document.text[a["begin"] : a["end"]] for a in document.annotations[0].value["answers"]]


def test_emrqa_notes_are_lists_of_lines_with_evidence(tmp_path):
    path = tmp_path / "data.json"
    second = {**SINGLE, "evidence_start": 5}
    path.write_text(json.dumps({"data": [emrqa(SINGLE, second), emrqa(SINGLE, title="relations")]}))
    stream = capr.read(path)
    documents = list(stream)
    assert stream.formats == {"squad": 2}
    assert [document.id for document in documents] == ["medication/105", "relations/105"]
    assert documents[0].title == "medication"  # emrQA writes the title after the paragraphs
    assert documents[0].text == "".join(NOTE) + "\n"
    assert evidence_of(documents[0]) == ["aspirin 81 mg daily ."] * 2
    question_value = documents[0].annotations[0].value
    first, second = question_value["answers"]
    assert (first["begin"], second["begin"]) == (29, 65)
    assert (first["text"], first["answer_entity_type"]) == ("81 mg", "single")
    assert (question_value["question"], question_value["paraphrases"]) == ("What dose?", ["Which dose?"])


@pytest.mark.parametrize(
    ("fields", "evidence"),
    [
        ({"answer_entity_type": "empty", "text": "", "answer_start": [3, ""]}, "aspirin 81 mg daily ."),
        ({"evidence_start": 99}, "aspirin 81 mg daily ."),  # the nearest line with the evidence
        (
            {"evidence": "The patient takes \naspirin 81 mg daily .", "evidence_start": 2},
            "".join(NOTE[1:3]).rstrip(),
        ),
        (
            {
                "answer_entity_type": "complex",
                "evidence": ["aspirin 81 mg daily .", "Denies pain ."],
                "evidence_start": [3, 4],
                "answer_start": [[3, 1], [4, 1]],
                "text": ["81 mg", "pain"],
            },
            "aspirin 81 mg daily .\nDenies pain .",
        ),
    ],
)
def test_every_emrqa_answer_type_is_located(read, fields, evidence):
    (document,), problems, _ = read("data.json", json.dumps({"data": [emrqa({**SINGLE, **fields})]}))
    assert evidence_of(document) == [evidence]
    assert not problems


def test_emrqa_evidence_that_is_not_in_the_note_is_reported(read):
    bad = {**SINGLE, "evidence": "penicillin"}
    (document,), (problem,), _ = read("data.json", json.dumps({"data": [emrqa(bad, SINGLE)]}))
    assert evidence_of(document) == ["aspirin 81 mg daily ."]
    assert "evidence that is not in the note: 'penicillin'" in problem.fact
    assert problem.record == document.id


def test_a_title_after_the_paragraphs_is_read(read):
    data = {"data": [{"paragraphs": [LAST], "title": "Gout"}, {"paragraphs": [LAST], "title": "Flu"}]}
    documents, *_ = read("a.json", json.dumps(data))  # the order of json.dump(sort_keys=True)
    assert [(document.id, document.title) for document in documents] == [("Gout#1", "Gout"), ("Flu#1", "Flu")]


def test_the_document_ids_of_covid_qa_are_read(read):
    (document,), *_ = read("a.json", json.dumps({"data": [{"paragraphs": [{**LAST, "document_id": 630}]}]}))
    assert document.id == "630"


def test_a_format_can_be_forced(read):
    (document,), *_ = read("a.dat", '{"data": [{"title": "T", "paragraphs": [{"context": "x"}]}]}', format="squad")
    assert (document.id, document.text) == ("T#1", "x")


@pytest.mark.parametrize("paragraph", [5, None, "x", ["x"], {}, {"context": None}, {"context": [1]}, {"qas": []}])
def test_a_paragraph_without_context_is_reported_and_the_rest_is_read(read, paragraph):
    (document,), (problem,), _ = read("a.json", squad_file(paragraph, LAST))
    assert document.text == "last"
    assert (problem.fact, problem.record) == ("the paragraph has no context", 1)


@pytest.mark.parametrize(
    ("bad", "fact"),
    [
        (answer("May", 0), "an answer of question 'q1' is not where its offset says: 'May' against 'No '"),
        (answer("May", 999), "is not where its offset says"),
        (answer("May", -4), "is not where its offset says"),
        (answer(" ", 999), "is not where its offset says"),
        ({"text": "May"}, "has no text or no answer_start"),
        ({"text": None, "answer_start": 0}, "has no text or no answer_start"),
        ("May", "is not an object"),
    ],
)
def test_a_bad_answer_is_reported_and_the_rest_is_read(read, bad, fact):
    (document, last), (problem,), _ = read("a.json", squad_file(question(answers=[bad, answer("May")]), LAST))
    assert evidence_of(document) == ["May"]
    assert last.text == "last"
    assert fact in problem.fact
    assert problem.record == "Gout#1"


@pytest.mark.parametrize(
    "paragraph",
    [
        {"context": CONTEXT, "qas": 5},
        {"context": CONTEXT, "qas": [5]},
        question(question=""),
        question(answers=5),
    ],
)
def test_bad_questions_are_reported_and_the_rest_is_read(read, paragraph):
    documents, problems, _ = read("a.json", squad_file(paragraph, LAST))
    assert documents[-1].text == "last"
    assert len(problems) == 1


@pytest.mark.parametrize("article", [5, {"title": "x"}, {"paragraphs": None}, {"paragraphs": {"context": "lost"}}])
def test_an_article_without_paragraphs_is_reported(read, article):
    data = {"data": [{"title": "Gout", "paragraphs": [LAST]}, article]}
    (document,), problems, notices = read("a.json", json.dumps(data))
    assert document.text == "last"
    assert problems or notices


@pytest.mark.parametrize("content", ["{}", "[]", '{"data": []}', '{"data": {"paragraphs": [{"context": "x"}]}}'])
def test_a_file_without_paragraphs_is_reported(read, content):
    documents, problems, notices = read("a.json", content, format="squad")
    assert problems or notices or documents


def test_an_undefined_byte_affects_only_its_record(read):
    content = squad_file(LAST, {"context": "@", "qas": []}, LAST).encode().replace(b"@", b"\x81")
    documents, (problem,), _ = read("a.json", content)
    assert [document.id for document in documents] == ["Gout#1", "Gout#3"]
    assert "byte 0x81" in problem.fact


def test_half_a_surrogate_pair_is_reported_not_replaced(read):
    documents, (problem,), _ = read("a.json", squad_file({"context": "x \ud83d", "qas": []}, LAST))
    assert [document.text for document in documents] == ["last"]
    assert "half of a surrogate pair" in problem.fact


@pytest.mark.parametrize("cut", [3, 20, 30])
def test_the_records_before_truncated_json_are_read(read, cut):
    documents, (problem,), _ = read("a.json", squad_file(LAST, LAST)[:-cut])
    assert documents[0].text == "last"
    assert "broken JSON" in problem.fact
    assert problem.record == len(documents) + 1


def test_truncated_gzip_is_reported(read):
    _, (problem,), _ = read("a.json.gz", gzip.compress(squad_file(LAST).encode())[:-12], format="squad")
    assert "gzip" in problem.fact


def test_an_answer_that_is_not_in_the_text_is_listed_as_unplaced(read):
    bad = answer("June", 3)
    (document,), (problem,), _ = read("a.json", squad_file(question(answers=[bad, answer("May")])))
    (question_annotation,) = document.annotations
    assert question_annotation.value["unplaced"] == [bad]
    assert [item["text"] for item in question_annotation.value["answers"]] == ["May"]
    assert "is not where its offset says" in problem.fact


def test_a_paragraph_may_have_annotations(read):
    annotation = {"kind": "section", "begin": 0, "end": 9, "heading": "Fever"}
    (document,), problems, _ = read(
        "a.json", squad_file({**question(answers=[answer("May")]), "annotations": [annotation]})
    )
    assert not problems
    assert [(a.kind, a.span, a.value.get("heading")) for a in document.annotations] == [
        ("section", (0, 9), "Fever"),
        ("question", (0, len(CONTEXT)), None),
    ]
    assert "annotations" not in document.metadata


@pytest.mark.parametrize(
    "annotation", [5, {}, {"kind": "section", "begin": 0, "end": 999}, {"kind": "x", "begin": "0", "end": 1}]
)
def test_a_bad_annotation_is_reported_and_the_rest_is_read(read, annotation):
    (document, last), (problem,), _ = read("a.json", squad_file({**LAST, "annotations": [annotation]}, LAST))
    assert (document.text, last.text) == ("last", "last")
    assert "an annotation is not usable" in problem.fact

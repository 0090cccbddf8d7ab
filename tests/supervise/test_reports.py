"""Reports with questions: reading, writing, splitting, sampling, and those of the samples."""

import json
from collections import Counter

import pytest

import capr
from capr.documents import Document, Span
from capr.supervise.reports import (
    Report,
    ReportQuestion,
    count,
    reports,
    sample_questions,
    sample_reports,
    split,
    write_squad,
)

CONTEXT = "Aspirin 81 mg daily. Aspirin helps."


def squad(tmp_path, *questions, context=CONTEXT):
    path = tmp_path / "a.json"
    paragraph = {"context": context, "qas": list(questions)}
    path.write_text(json.dumps({"version": "v2.0", "data": [{"title": "Note", "paragraphs": [paragraph]}]}))
    return path


def question(answers, id="q1", **fields):
    return {
        "id": id,
        "question": "How much?",
        "answers": [{"text": text, "answer_start": begin} for text, begin in answers],
        **fields,
    }


def read(path):
    return list(reports(capr.read(path)))


def test_answers_are_spans_of_the_text(tmp_path):
    (report,) = read(squad(tmp_path, question([("81 mg", 8), ("81 mg", 8), ("81 mg daily", 8)])))
    (parsed,) = report.questions
    assert (parsed.id, parsed.text) == ("q1", "How much?")
    assert parsed.answers == (Span(8, 13), Span(8, 19))
    assert [report.document[span] for span in parsed.answers] == ["81 mg", "81 mg daily"]
    assert not report.document.annotations


def test_impossible_questions_have_no_answers(tmp_path):
    impossible = question([], is_impossible=True, plausible_answers=[{"text": "81 mg", "answer_start": 8}])
    (report,) = read(squad(tmp_path, impossible))
    assert report.questions[0].answers == ()
    assert count([report]) == (1, 1)


def test_corrects_slightly_wrong_offsets(tmp_path):
    (report,) = read(squad(tmp_path, question([("Aspirin", 20)])))
    assert report.questions[0].answers == (Span(21, 28),)


def test_drops_a_question_if_the_text_contains_no_answer(tmp_path):
    (report,) = read(squad(tmp_path, question([("ibuprofen", 0)]), question([("81 mg", 8)], id="q2")))
    assert [parsed.id for parsed in report.questions] == ["q2"]


def test_reads_back_the_reports_that_it_wrote(tmp_path):
    expected = sample_reports(pairs=True)
    write_squad(expected, tmp_path / "samples.json")
    documents = capr.read(tmp_path / "samples.json", strict=True)
    assert list(reports(documents)) == expected
    assert [path.name for path in tmp_path.iterdir()] == ["samples.json"]


def test_written_files_are_squad_v2(tmp_path):
    report = Report(
        Document("n1", CONTEXT, "Note"), (ReportQuestion("1", "Dose?", (Span(8, 13),)), ReportQuestion("2", "Why?", ()))
    )
    write_squad([report], tmp_path / "a.json")
    data = json.loads((tmp_path / "a.json").read_text())
    assert data["version"] == "v2.0"
    (article,) = data["data"]
    (paragraph,) = article["paragraphs"]
    assert (article["title"], paragraph["context"]) == ("Note", CONTEXT)
    assert paragraph["qas"] == [
        {"id": "1", "question": "Dose?", "answers": [{"text": "81 mg", "answer_start": 8}], "is_impossible": False},
        {"id": "2", "question": "Why?", "answers": [], "is_impossible": True},
    ]


def test_samples_have_the_questions_that_their_notes_answer():
    reports_of_samples = sample_reports()
    assert count(reports_of_samples) == (247, 70)
    documents = {report.document.id: report.document for report in reports_of_samples}
    samples = {question.id: question for question in capr.samples.questions()}
    for report in reports_of_samples:
        for report_question in report.questions:
            id, document = report_question.id.split("/")
            expected = samples[id]
            assert document == report.document.id
            assert report_question.text == expected.question
            assert set(report_question.answers) == {
                answer.span for answer in expected.answers if answer.document == document
            }
            assert bool(report_question.answers) == bool(expected.answers)
            assert expected.patient == documents[document].metadata.get("patient")


def test_unanswerable_samples_are_about_their_note_or_article():
    by_name = {report.document.title or report.document.id: report for report in sample_reports()}
    thrombosis = next(report for name, report in by_name.items() if "Deep vein thrombosis" in name)
    assert "Does travel insurance become more expensive after a deep vein thrombosis?" in [
        report_question.text for report_question in thrombosis.questions if not report_question.answers
    ]
    assert len(sample_reports()) == len(sample_reports(pairs=True)) == 102


def numbered(count):
    return [Report(Document(f"n{i}", "text"), (ReportQuestion(f"q{i}", "?", ()),)) for i in range(count)]


def test_a_split_depends_on_ids_alone():
    reports = numbered(500)
    train, test = split(reports)
    assert 70 < len(test) < 130
    assert len(train) + len(test) == 500
    assert split(reports[::-1])[1] == test[::-1]
    other_test = split(reports, seed=1)[1]
    assert other_test != test
    assert split(reports, share=0.0) == (reports, [])


def test_seed_zero_gives_the_split_of_other_tests():
    reports = [Report(Document(id, "text"), ()) for id in ("Gout", "Asthma", "Stroke", "Hives", "Rabies")]
    assert [report.document.id for report in split(reports)[1]] == ["Stroke"]


def test_samples_questions_with_replacement():
    report = Report(Document("n", "text"), tuple(ReportQuestion(f"q{i}", "?", ()) for i in range(20)))
    (sampled_report,) = sample_questions([report], 0.5)
    assert len(sampled_report.questions) == 10
    assert set(sampled_report.questions) <= set(report.questions)
    assert sample_questions([report], 0.5) == [sampled_report]
    repeated = sample_questions([report], 5)[0].questions
    assert max(Counter(repeated).values()) > 1
    assert sample_questions([report], 0.01)[0].questions == ()


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "documents", "questions", "unanswerable"),
    [
        ("squad/squad2_half_dev.json", 646, 6078, 3168),
        ("squad/xquad_en.json", 240, 1190, 0),
        ("covid_qa/covid_qa.json", 98, 1380, 0),
    ],
)
def test_reads_published_data(data, name, documents, questions, unanswerable):
    actual = read(data / name)
    assert len(actual) == documents
    assert count(actual) == (questions, unanswerable)


def test_rejects_two_reports_with_one_id(tmp_path):
    report = Report(Document("n1", "Knee pain."), (ReportQuestion("1", "What hurts?", (Span(0, 4),)),))
    with pytest.raises(capr.CaprError, match=r"two reports have the id 'n1'\. Fix: give each"):
        write_squad([report, report], tmp_path / "a.json")
    assert not (tmp_path / "a.json").exists()

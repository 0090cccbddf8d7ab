"""Reports with questions: read, written, split, sampled, and those of the samples."""

import json
from collections import Counter

import pytest

import capr
from capr.documents import Document, Span
from capr.supervise.reports import Asked, Report, count, of_samples, reports, sampled, split, write_squad

CONTEXT = "Aspirin 81 mg daily. Aspirin helps."


def squad(tmp_path, *questions, context=CONTEXT):
    path = tmp_path / "a.json"
    paragraph = {"context": context, "qas": list(questions)}
    path.write_text(json.dumps({"version": "v2.0", "data": [{"title": "Note", "paragraphs": [paragraph]}]}))
    return path


def question(answers, id="q1", **more):
    return {"id": id, "question": "How much?", "answers": [{"text": t, "answer_start": b} for t, b in answers], **more}


def read(path):
    return list(reports(capr.read(path)))


def test_answers_are_ranges_of_the_text(tmp_path):
    (report,) = read(squad(tmp_path, question([("81 mg", 8), ("81 mg", 8), ("81 mg daily", 8)])))
    (asked,) = report.questions
    assert (asked.id, asked.text) == ("q1", "How much?")
    assert asked.answers == (Span(8, 13), Span(8, 19))
    assert [report.document[span] for span in asked.answers] == ["81 mg", "81 mg daily"]
    assert not report.document.annotations


def test_impossible_questions_have_no_answers(tmp_path):
    impossible = question([], is_impossible=True, plausible_answers=[{"text": "81 mg", "answer_start": 8}])
    (report,) = read(squad(tmp_path, impossible))
    assert report.questions[0].answers == ()
    assert count([report]) == (1, 1)


def test_offsets_that_are_a_little_wrong_are_put_right(tmp_path):
    (report,) = read(squad(tmp_path, question([("Aspirin", 20)])))
    assert report.questions[0].answers == (Span(21, 28),)


def test_a_question_whose_answer_is_nowhere_is_not_unanswerable(tmp_path):
    (report,) = read(squad(tmp_path, question([("ibuprofen", 0)]), question([("81 mg", 8)], id="q2")))
    assert [asked.id for asked in report.questions] == ["q2"]


def test_what_is_written_is_read_again(tmp_path):
    found = of_samples(pairs=True)
    write_squad(found, tmp_path / "samples.json")
    reading = capr.read(tmp_path / "samples.json", strict=True)
    assert list(reports(reading)) == found
    assert [path.name for path in tmp_path.iterdir()] == ["samples.json"]


def test_written_files_are_squad_v2(tmp_path):
    report = Report(Document("n1", CONTEXT, "Note"), (Asked("1", "Dose?", (Span(8, 13),)), Asked("2", "Why?", ())))
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


def test_samples_are_asked_what_their_notes_answer():
    found = of_samples()
    assert count(found) == (247, 70)
    documents = {report.document.id: report.document for report in found}
    samples = {question.id: question for question in capr.samples.questions()}
    for report in found:
        for asked in report.questions:
            id, document = asked.id.split("/")
            gold = samples[id]
            assert document == report.document.id
            assert asked.text == gold.question
            assert set(asked.answers) == {answer.span for answer in gold.answers if answer.document == document}
            assert bool(asked.answers) == bool(gold.answers)
            assert gold.patient == documents[document].metadata.get("patient")


def test_unanswerable_samples_concern_their_note_or_article():
    found = {report.document.title or report.document.id: report for report in of_samples()}
    thrombosis = next(report for name, report in found.items() if "Deep vein thrombosis" in name)
    assert "Does travel insurance become more expensive after a deep vein thrombosis?" in [
        asked.text for asked in thrombosis.questions if not asked.answers
    ]
    assert len(of_samples()) == len(of_samples(pairs=True)) == 102


def numbered(count):
    return [Report(Document(f"n{i}", "text"), (Asked(f"q{i}", "?", ()),)) for i in range(count)]


def test_a_split_depends_on_ids_alone():
    reports = numbered(500)
    train, test = split(reports)
    assert 70 < len(test) < 130
    assert len(train) + len(test) == 500
    assert split(reports[::-1])[1] == test[::-1]
    other = split(reports, seed=1)[1]
    assert other != test
    assert split(reports, share=0.0) == (reports, [])


def test_the_split_is_that_of_other_tests():
    reports = [Report(Document(id, "text"), ()) for id in ("Gout", "Asthma", "Stroke", "Hives", "Rabies")]
    assert [report.document.id for report in split(reports)[1]] == ["Stroke"]


def test_questions_are_sampled_with_replacement():
    report = Report(Document("n", "text"), tuple(Asked(f"q{i}", "?", ()) for i in range(20)))
    (drawn,) = sampled([report], 0.5)
    assert len(drawn.questions) == 10
    assert set(drawn.questions) <= set(report.questions)
    assert sampled([report], 0.5) == [drawn]
    many = sampled([report], 5)[0].questions
    assert max(Counter(many).values()) > 1
    assert sampled([report], 0.01)[0].questions == ()


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "documents", "asked", "without"),
    [
        ("squad/squad2_half_dev.json", 646, 6078, 3168),
        ("squad/xquad_en.json", 240, 1190, 0),
        ("covid_qa/covid_qa.json", 98, 1380, 0),
    ],
)
def test_published_data_are_read(data, name, documents, asked, without):
    found = read(data / name)
    assert len(found) == documents
    assert count(found) == (asked, without)


def test_two_reports_with_one_id_are_refused(tmp_path):
    report = Report(Document("n1", "Knee pain."), (Asked("1", "What hurts?", (Span(0, 4),)),))
    with pytest.raises(capr.CaprError, match=r"two reports have the id 'n1'\. Fix: give each"):
        write_squad([report, report], tmp_path / "a.json")
    assert not (tmp_path / "a.json").exists()

"""Questions that capr makes from notes."""

import json
import re

import pytest
from typer.testing import CliRunner

import capr
from capr.annotate.mentions import annotator
from capr.cli import typer_app
from capr.documents import CaprError, Document
from capr.supervise.facts import Note, find_facts
from capr.supervise.questions import is_unmentioned, questions, unambiguous_facts, wordings
from capr.supervise.reports import count, reports

NOTES = [
    Document("a", "MEDICATIONS: Lisinopril 20 mg PO daily. Creatinine 1.4 mg/dL.\nHe denies chest pain.\n"),
    Document("b", "MEDICATIONS: Metformin 500 mg b.i.d. Lisinopril 10 mg, then lisinopril 20 mg. She takes aspirin.\n"),
]


@pytest.fixture(scope="module")
def notes():
    return [document for document in capr.samples.documents() if document.metadata["source"] == "notes"]


@pytest.fixture(scope="module")
def sample_reports(notes):
    return list(questions(notes))


def test_samples_give_many_questions(sample_reports):
    total, unanswerable = count(sample_reports)
    assert len(sample_reports) == 70
    assert total > 1000
    assert 0.25 < unanswerable / total < 0.35
    assert max(len(report.questions) for report in sample_reports) <= 20


def test_answers_are_words_of_the_note(sample_reports):
    for report in sample_reports:
        assert len({question.id for question in report.questions}) == len(report.questions)
        assert len({question.text for question in report.questions}) == len(report.questions)
        for question in report.questions:
            assert question.text.endswith("?")
            assert "{" not in question.text
            for span in question.answers:
                words = report.document[span]
                assert words == words.strip()
                assert 1 <= len(words.split()) <= 25


def test_one_seed_gives_the_same_questions(notes, sample_reports):
    assert list(questions(notes)) == sample_reports
    assert list(questions(notes, seed=1)) != sample_reports


def test_drops_the_dose_of_a_drug_with_two_doses():
    note = Note.from_document(NOTES[1], annotator(with_tagger=False))
    doses = [fact.subject for fact, _ in unambiguous_facts(note, find_facts(note)) if fact.kind == "dose"]
    assert doses == ["metformin"]


def test_every_occurrence_of_an_answer_is_an_answer():
    text = "Lisinopril 20 mg daily. Continue lisinopril 20 mg."
    note = Note.from_document(Document("1", text), annotator(with_tagger=False))
    (spans,) = [spans for fact, spans in unambiguous_facts(note, find_facts(note)) if fact.kind == "dose"]
    assert [span.of(text) for span in spans] == ["20 mg", "20 mg"]


def test_unanswerable_questions_are_about_subjects_that_the_note_does_not_mention(notes, sample_reports):
    """The note does not name the drug or test of an unanswerable question, or gives no number for it."""
    documents = {note.id: note for note in notes}
    subject_pattern = re.compile(r"(?:dose of|much|dosage was|often (?:is|does \w+ ?\w* take)) ([\w-]+)")
    checked = 0
    for report in sample_reports:
        text = documents[report.document.id].text.lower()
        for question in report.questions:
            subject = subject_pattern.search(question.text)
            if question.answers or not subject or subject[1] in ("blood", "alcohol"):
                continue
            checked += 1
            for match in re.finditer(re.escape(subject[1].lower()), text):
                assert not re.search(r"^[^.\n]{0,20}\d ?mg", text[match.end() :]), (report.document.id, question.text)
    assert checked > 20


def test_a_subject_under_another_name_is_not_unmentioned():
    first, second = (Note.from_document(note, annotator(with_tagger=False)) for note in NOTES)
    by_kind = {fact.kind: fact for fact in find_facts(first)}
    keys = frozenset(second.key(mention) for mention in second.mentions)
    assert not is_unmentioned(by_kind["dose"], second.text, second.lower_text, keys)
    assert is_unmentioned(by_kind["value"], second.text, second.lower_text, keys)
    assert not is_unmentioned(by_kind["value"], "", "serum creatinine was normal", frozenset())


def test_no_value_of_a_note_is_unmentioned_in_it():
    text = "BP 168/92. HR 88, RR 18. Na 138, K 4.1, Cl 101, Cr 1.9, Hb 9.8. EF 35%. Blood\npressure fell."
    note = Note.from_document(Document("n", text), annotator(with_tagger=False))
    values = [fact for fact in find_facts(note) if fact.kind == "value"]
    assert len(values) >= 8
    assert not [fact.key for fact in values if is_unmentioned(fact, note.text, note.lower_text, frozenset())]


def test_a_share_of_zero_gives_no_unanswerable_questions(notes):
    assert count(list(questions(notes[:5], unanswerable=0, per_note=0)))[1] == 0


def test_rejects_a_share_of_one():
    with pytest.raises(CaprError, match="Fix: give it from 0 to below 1"):
        list(questions(NOTES, unanswerable=1))


def test_notes_without_questions_yield_no_report():
    assert list(questions([Document("1", "Hello."), Document("2", "")])) == []


def test_questions_are_of_many_kinds(sample_reports):
    """A list of thirty drugs does not crowd out the rest."""
    starts = {question.text.split()[0] for report in sample_reports for question in report.questions}
    assert len(starts) > 10
    assert len(wordings()) > 40


def run(*arguments):
    result = CliRunner().invoke(typer_app, ["questions", *map(str, arguments)], env={"COLUMNS": "80"})
    if isinstance(result.exception, CaprError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_command_writes_squad(tmp_path):
    folder, output = capr.samples.folder() / "notes", tmp_path / "questions.json"
    printed = run(folder, "-o", output, "--per-note", 10, "--seed", 3, "--unanswerable", 0.2)
    written_reports = list(reports(capr.read(output, strict=True)))
    total, unanswerable = count(written_reports)
    assert re.match(
        rf"{total:,} questions about 70 notes, {unanswerable:,} without an answer, \d+ with several: ", printed
    )
    assert max(len(report.questions) for report in written_reports) <= 10
    expected = output.read_bytes()
    with pytest.raises(CaprError, match=r"questions\.json exists already\. Fix: name another file, or remove it first"):
        run(folder, "-o", output)
    assert output.read_bytes() == expected
    output.unlink()
    run(folder, "-o", output, "--per-note", 10, "--seed", 3, "--unanswerable", 0.2)
    assert output.read_bytes() == expected


def test_the_command_overwrites_no_other_file(tmp_path):
    note = tmp_path / "note.txt"
    note.write_text("Lisinopril 20 mg daily.")
    with pytest.raises(CaprError, match="exists already"):
        run(note, "-o", note)
    with pytest.raises(CaprError, match="there is no folder"):
        run(note, "-o", tmp_path / "no" / "q.json")
    assert note.read_text() == "Lisinopril 20 mg daily."
    run(note, "-o", tmp_path / "q.json", "--unanswerable", 0)
    assert json.loads((tmp_path / "q.json").read_text())["data"]


def test_the_command_rejects_documents_without_facts(tmp_path):
    (tmp_path / "note.txt").write_text("Hello.")
    with pytest.raises(CaprError, match=r"capr found no question in 1 document\. Fix: "):
        run(tmp_path / "note.txt", "-o", tmp_path / "q.json")

"""Questions that notes themselves give."""

import json
import re

import pytest
from typer.testing import CliRunner

import capr
from capr.annotate.mentions import annotator
from capr.cli import typer_app
from capr.documents import CaprError, Document
from capr.supervise.facts import Note, facts
from capr.supervise.questions import answered, is_foreign, questions, wordings
from capr.supervise.reports import count, reports

NOTES = [
    Document("a", "MEDICATIONS: Lisinopril 20 mg PO daily. Creatinine 1.4 mg/dL.\nHe denies chest pain.\n"),
    Document("b", "MEDICATIONS: Metformin 500 mg b.i.d. Lisinopril 10 mg, then lisinopril 20 mg. She takes aspirin.\n"),
]


@pytest.fixture(scope="module")
def notes():
    return [document for document in capr.samples.documents() if document.metadata["source"] == "notes"]


@pytest.fixture(scope="module")
def asked(notes):
    return list(questions(notes))


def test_samples_give_many_questions(asked):
    total, without = count(asked)
    assert len(asked) == 70
    assert total > 1000
    assert 0.25 < without / total < 0.35
    assert max(len(report.questions) for report in asked) <= 20


def test_answers_are_words_of_the_note(asked):
    for report in asked:
        assert len({question.id for question in report.questions}) == len(report.questions)
        assert len({question.text for question in report.questions}) == len(report.questions)
        for question in report.questions:
            assert question.text.endswith("?")
            assert "{" not in question.text
            for span in question.answers:
                words = report.document[span]
                assert words == words.strip()
                assert 1 <= len(words.split()) <= 25


def test_the_same_seed_asks_the_same(notes, asked):
    assert list(questions(notes)) == asked
    assert list(questions(notes, seed=1)) != asked


def test_a_drug_with_two_doses_is_not_asked_for():
    note = Note.of(NOTES[1], annotator(with_tagger=False))
    doses = [fact.subject for fact, _ in answered(note, facts(note)) if fact.kind == "dose"]
    assert doses == ["metformin"]


def test_all_places_that_say_the_same_answer():
    text = "Lisinopril 20 mg daily. Continue lisinopril 20 mg."
    note = Note.of(Document("1", text), annotator(with_tagger=False))
    (spans,) = [spans for fact, spans in answered(note, facts(note)) if fact.kind == "dose"]
    assert [span.of(text) for span in spans] == ["20 mg", "20 mg"]


def test_unanswerable_questions_are_about_what_the_note_does_not_say(notes, asked):
    """Whatever is asked without an answer, no drug or test of it stands in the note, or no number stands by it."""
    documents = {note.id: note for note in notes}
    named = re.compile(r"(?:dose of|much|dosage was|often (?:is|does \w+ ?\w* take)) ([\w-]+)")
    checked = 0
    for report in asked:
        text = documents[report.document.id].text.lower()
        for question in report.questions:
            subject = named.search(question.text)
            if question.answers or not subject or subject[1] in ("blood", "alcohol"):
                continue
            checked += 1
            for place in re.finditer(re.escape(subject[1].lower()), text):
                assert not re.search(r"^[^.\n]{0,20}\d ?mg", text[place.end() :]), (report.document.id, question.text)
    assert checked > 20


def test_what_a_note_mentions_in_any_way_is_not_foreign():
    a, b = (Note.of(note, annotator(with_tagger=False)) for note in NOTES)
    by_kind = {fact.kind: fact for fact in facts(a)}
    keys = frozenset(b.key(mention) for mention in b.mentions)
    assert not is_foreign(by_kind["dose"], b.text, b.lower, keys)
    assert is_foreign(by_kind["value"], b.text, b.lower, keys)
    assert not is_foreign(by_kind["value"], "", "serum creatinine was normal", frozenset())


def test_no_value_of_a_note_is_foreign_to_it():
    text = "BP 168/92. HR 88, RR 18. Na 138, K 4.1, Cl 101, Cr 1.9, Hb 9.8. EF 35%. Blood\npressure fell."
    note = Note.of(Document("n", text), annotator(with_tagger=False))
    found = [fact for fact in facts(note) if fact.kind == "value"]
    assert len(found) >= 8
    assert not [fact.key for fact in found if is_foreign(fact, note.text, note.lower, frozenset())]


def test_no_unanswerable_questions_if_none_are_wanted(notes):
    assert count(list(questions(notes[:5], unanswerable=0, per_note=0)))[1] == 0


def test_a_share_beyond_reason_is_refused():
    with pytest.raises(CaprError, match="Fix: give it from 0 to below 1"):
        list(questions(NOTES, unanswerable=1))


def test_notes_of_which_nothing_can_be_asked_are_left_out():
    assert list(questions([Document("1", "Hello."), Document("2", "")])) == []


def test_kinds_are_spread(asked):
    """A list of thirty drugs does not crowd out the rest."""
    starts = {question.text.split()[0] for report in asked for question in report.questions}
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
    found = list(reports(capr.read(output, strict=True)))
    total, without = count(found)
    assert re.match(rf"{total:,} questions about 70 notes, {without:,} without an answer, \d+ with several: ", printed)
    assert max(len(report.questions) for report in found) <= 10
    first = output.read_bytes()
    run(folder, "-o", output, "--per-note", 10, "--seed", 3, "--unanswerable", 0.2)
    assert output.read_bytes() == first


def test_the_command_overwrites_nothing_else(tmp_path):
    note = tmp_path / "note.txt"
    note.write_text("Lisinopril 20 mg daily.")
    with pytest.raises(CaprError, match="holds no questions"):
        run(note, "-o", note)
    with pytest.raises(CaprError, match="there is no folder"):
        run(note, "-o", tmp_path / "no" / "q.json")
    assert note.read_text() == "Lisinopril 20 mg daily."
    run(note, "-o", tmp_path / "q.json", "--unanswerable", 0)
    assert json.loads((tmp_path / "q.json").read_text())["data"]


def test_documents_without_facts_are_told(tmp_path):
    (tmp_path / "note.txt").write_text("Hello.")
    with pytest.raises(CaprError, match=r"nothing can be asked of 1 document\. Fix: "):
        run(tmp_path / "note.txt", "-o", tmp_path / "q.json")

"""Asking: answers with their spans and context, and questions without an answer."""

import json
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import capr
from capr.documents import CaprError, Document, ReadError, Span
from capr.runtime.reader import ReadAnswer
from capr.search import answering, asking, models, paragraphs

_spec = spec_from_file_location("fake_reader", Path(__file__).parent / "fake_reader.py")
fake_reader = module_from_spec(_spec)
_spec.loader.exec_module(fake_reader)
FakeReader = fake_reader.FakeReader

NOTE = Document(
    "n1",
    "HISTORY: He denies chest pain. Father had asthma.\n\n"
    "PAST MEDICAL HISTORY: gout, treated in 2001.\n\n"
    "MEDICATIONS:\nfurosemide 40 mg daily\naspirin 81 mg\n\n"
    "PLAN: If fever comes back, stop. Go on with furosemide 40 MG daily.\n",
    "Letter",
    {"patient": "p1", "date": "2024-05-01"},
)


def ask(question, documents=NOTE, **options):
    return capr.ask(documents, question, **{"reader": FakeReader(), **options})


@pytest.fixture
def alone(monkeypatch):
    """Read each passage by itself."""
    monkeypatch.setattr(answering, "join_passages", partial(paragraphs.join_passages, length=1))


# --- exact answers ---


def test_an_answer_has_its_span_sentence_paragraph_and_headings():
    answers = ask("81 mg?")
    (answer,) = answers
    assert answers.answered
    assert (answers.question, answers.reader, answers.threshold) == ("81 mg?", "fake", 0.5)
    assert (answers.documents, answers.passages) == (1, 4)
    assert answer.text == NOTE.text[answer.span.begin : answer.span.end] == "81 mg"
    assert (answer.document, answer.title, answer.metadata["patient"]) == ("n1", "Letter", "p1")
    assert answer.headings == ("MEDICATIONS",)
    assert answer[answer.sentence] == "aspirin 81 mg"
    assert answer[answer.passage] == "MEDICATIONS:\nfurosemide 40 mg daily\naspirin 81 mg"
    assert answer.confidence == 0.9
    assert not answer.context
    assert answers.took > 0


def test_a_reader_may_give_notices_and_another_name():
    class NotifyingReader(FakeReader):
        def read_with_notices(self, question, paragraphs, best=1):
            return self.read(question, paragraphs, best), ["the reader was slow"], "slow"

    answers = capr.ask(NOTE, "81 mg?", reader=NotifyingReader())
    assert (answers[0].text, answers.reader, answers.notices) == ("81 mg", "slow", ("the reader was slow",))


def test_only_one_answer_of_a_paragraph_group_is_sure():
    first, second = ask("81 mg/40 mg", reader=FakeReader(0.9, 0.3))
    assert (first.text, first.confidence) == ("81 mg", 0.9)
    assert (second.text, second.confidence) == ("40 mg", pytest.approx(0.06))
    (same,) = ask("40 mg/40 MG", reader=FakeReader(0.9, 0.3))  # equal words keep their confidence
    assert [place.confidence for place in same.places] == [0.6]


def test_an_answer_has_the_heading_of_the_innermost_section():
    text = "PHYSICAL EXAM:\nVitals: stable.\nLungs: clear to auscultation.\n\nPLAN: Rest.\n"
    (answer,) = ask("clear", Document("n", text))
    assert answer.headings[-1] == "Lungs"


@given(st.text(alphabet="ab é🩺\n:.", min_size=1, max_size=80), st.data())
def test_answers_lie_in_their_paragraph(text, data):
    class Anywhere:
        name, threshold = "anywhere", 0.5

        def read(self, question, paragraphs, best=1):
            offsets = st.integers(-2, 90)
            return [[ReadAnswer(Span(data.draw(offsets), data.draw(offsets)), 0.7)] for _ in paragraphs]

    document = Document("n", text)
    for answer in capr.ask(document, "what?", reader=Anywhere(), k=20):
        assert answer.text == text[answer.span.begin : answer.span.end]
        assert answer.text.strip() == answer.text != ""
        assert answer.passage.covers(answer.span)
        assert answer.sentence.covers(answer.span)


def test_answers_are_ranked_by_confidence(alone):
    answers = ask("81 mg/gout/fever", reader=FakeReader(0.7, 0.15), k=2)
    assert [(answer.text, answer.confidence) for answer in answers] == [("81 mg", 0.7), ("gout", 0.55)]
    answers = ask("81 mg/gout/fever", reader=FakeReader(0.7, 0.15))
    assert [answer.confidence >= answers.threshold for answer in answers] == [True, True, False]


def test_offsets_count_characters():
    text = "PLAN: 🩺 Größe 5 µg täglich.\r\nDIÄT: frei."
    (answer,) = ask("5 µg", Document("n", text))
    assert (answer.text, answer.span) == ("5 µg", Span(text.index("5"), text.index("5") + 4))


# --- no answer ---


def test_an_answer_below_the_threshold_is_listed_but_not_found():
    answers = ask("81 mg", reader=FakeReader(0.3))
    assert not answers.answered
    assert answers[0].text == "81 mg"
    assert ask("81 mg", reader=FakeReader(0.3), threshold=0.3).answered
    assert not ask("81 mg", threshold=0.95).answered
    assert not ask("warfarin").answered


@pytest.mark.parametrize("text", ["", " \n\n "])
def test_an_empty_document_has_no_answer(text):
    answers = ask("what?", Document("n", text))
    assert (answers.answered, len(answers), answers.passages) == (False, 0, 0)


@pytest.mark.parametrize("question", ["", "  ", "?!"])
def test_a_question_needs_words(question):
    with pytest.raises(CaprError, match=r"there is no question\. Fix: "):
        ask(question)


def test_a_question_that_is_too_long_is_refused():
    with pytest.raises(CaprError, match=r"1,203 characters, and only 1,000 are read\. Fix: "):
        ask("why " * 300 + "so?")
    assert not ask("why " * 249).answered


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k is 0. Fix: "),
        ({"k": True}, "k is True. Fix: "),
        ({"threshold": 1.5}, "the threshold is 1.5. Fix: "),
        ({"reader": "none"}, 'the reader is "none". Fix: '),
        ({"reader": None}, "there is no reader of answers in .*Fix: "),
        ({"document": "n2"}, r"there is no document 'n2'\. Fix: name one of the documents read \(n1\)"),
    ],
)
def test_invalid_options_are_refused(options, message):
    with pytest.raises(CaprError, match=message):
        ask("gout", **options)


def test_an_answer_in_a_very_long_line_is_found():
    words = "lorem ipsum dolor sit " * 45_000
    text = f"{words}warfarin 5 mg {words[:60_000]}"
    reader = FakeReader()
    (answer,) = ask("warfarin 5 mg", Document("n", text), reader=reader)
    assert answer.span == Span(len(words), len(words) + 13)
    assert max(map(len, reader.paragraphs)) < 3000
    long_word = "x" * 1_000_000
    assert not ask("warfarin", Document("n", long_word)).answered


def test_too_much_to_read_is_refused(monkeypatch):
    monkeypatch.setattr(paragraphs, "MOST", 3)
    with pytest.raises(CaprError, match=r"more than 3 passages to read\. Fix: .*capr index"):
        ask("gout")


# --- files ---


def test_files_are_read(tmp_path):
    (tmp_path / "note.txt").write_text(NOTE.text)
    (answer,) = ask("81 mg", tmp_path / "note.txt")
    assert (answer.document, answer.text) == ("note.txt", "81 mg")
    lines = [{"id": name, "text": f"PLAN: {name} takes {name} mg."} for name in ("7", "8")]
    (tmp_path / "notes.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\nbroken\n")
    answers = ask("7 mg/8 mg", str(tmp_path / "notes.jsonl"))
    assert [answer.document for answer in answers] == ["7", "8"]
    assert "broken JSON" in answers.notices[0]
    assert [answer.document for answer in ask("7 mg/8 mg", tmp_path / "notes.jsonl", document="8")] == ["8"]


def test_a_binary_file_is_refused(tmp_path):
    (tmp_path / "scan.bin").write_bytes(bytes(range(256)) * 20)
    with pytest.raises(ReadError, match=r"scan\.bin: .*Fix: "):
        ask("what?", tmp_path / "scan.bin")
    with pytest.raises(CaprError, match="there is no such file"):
        ask("what?", tmp_path / "nowhere.txt")


# --- merging ---


def test_equal_answers_are_merged():
    (answer,) = ask("40 mg/40 MG")
    assert (answer.text, answer.confidence) == ("40 mg", 0.9)
    (place,) = answer.places
    assert (place.document, place.text, place.confidence, place.headings) == ("n1", "40 MG", 0.8, ("PLAN",))
    assert NOTE[place.span] == place.text


def test_places_below_the_threshold_are_left_out():
    (answer,) = ask("40 mg/40 MG", reader=FakeReader(0.9, 0.5))
    assert answer.places == ()


def test_the_surest_of_overlapping_answers_stays():
    (answer,) = ask("81 mg/aspirin 81/81", k=5)
    assert (answer.text, answer.places) == ("81 mg", ())


def test_equal_words_about_two_patients_are_two_answers():
    notes = [Document(name, "PLAN: 40 mg.", "", {"patient": patient}) for name, patient in ("a1", "a1", "b2")]
    answers = ask("40 mg", [Document(f"{i}", note.text, "", note.metadata) for i, note in enumerate(notes)])
    assert [(answer.metadata["patient"], len(answer.places)) for answer in answers] == [("1", 1), ("2", 0)]


def test_equal_words_in_two_contexts_are_two_answers():
    text = "PLAN: Has asthma. Asthma is bad.\n\nFAMILY HISTORY: asthma."
    own, relatives = ask("asthma/Asthma", Document("n", text))
    assert (own.text, len(own.places), *own.context) == ("asthma", 1)
    assert (relatives.text, *relatives.context) == ("asthma", "family")


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        ("Lasix  40\nmg.", "lasix 40 mg", True),
        ("(aspirin)", "aspirin,", True),
        ("1.5 mg", "15 mg", False),
        (".5 mg", "5 mg", False),
        ("-5", "5", False),
        ("e\u0301", "é", True),
    ],
)
def test_normalised_answers(first, second, equal):
    assert (answering.normalised(first) == answering.normalised(second)) == equal


# --- context ---


@pytest.mark.parametrize(
    ("question", "flags"),
    [
        ("chest pain", {"negated": "denies"}),
        ("He denies chest pain", {"negated": "denies"}),
        ("asthma", {"family": "Father"}),
        ("gout", {"historical": "PAST MEDICAL HISTORY"}),
        ("fever", {"hypothetical": "If"}),
        ("furosemide 40 mg", {}),
        ("He denies chest pain. Father had asthma", {}),
    ],
)
def test_an_answer_has_the_context_of_its_mentions(question, flags):
    (answer,) = ask(question)
    assert {flag: cue.words for flag, cue in answer.context.items()} == flags


def test_a_cue_late_in_a_long_answer_does_not_count():
    text = "PLAN: as the vegetation was under 2 cm, cultures were clear, and there was no heart failure."
    (answer,) = ask(text[9:-1], Document("n", text))
    assert not answer.context


# --- JSON ---


def test_answers_as_json(alone):
    record = json.loads(json.dumps(ask("chest pain/40 mg/40 MG").as_json()))
    assert record.keys() >= {"question", "answered", "found", "threshold", "reader", "took", "notices", "answers"}
    pain, dose = record["answers"]
    assert pain["context"] == {"negated": {"text": "denies", "begin": 12, "end": 18}}
    for record in (pain, pain["sentence"], pain["passage"], pain["paragraph"], dose["places"][0]):
        assert NOTE.text[record["begin"] : record["end"]] == record["text"]
    assert (dose["confidence"], dose["headings"], dose["metadata"]["date"]) == (0.8, ["MEDICATIONS"], "2024-05-01")


# --- libraries ---

NOTES = [
    NOTE,
    Document("n2", "PLAN: furosemide 20 mg daily.", "Note", {"patient": "p1", "date": "2023-05-01"}),
    Document("n3", "PLAN: furosemide 10 mg daily.\n\nDIET: 10 mg salt.", "Note", {"patient": "p2"}),
    Document("n4", "", "Nothing", {"patient": "p3"}),
]


@pytest.fixture
def library(opened):
    filled = opened(encoder="none", reader=FakeReader())
    filled.add(NOTES)
    return filled


def documents_and_texts(answers):
    return [(answer.document, answer.text) for answer in answers]


def test_a_named_document_is_read_completely(library):
    answers = library.ask("chest pain", "n1")
    assert (documents_and_texts(answers), answers.passages) == ([("n1", "chest pain")], 4)
    assert answers[0].context["negated"].words == "denies"
    assert [a.as_json() for a in answers] == [a.as_json() for a in ask("chest pain")]
    assert documents_and_texts(library.ask("10 mg", "n1")) == []
    with pytest.raises(CaprError, match="no document 'n9'"):
        library.ask("gout", "n9")
    assert library.ask("gout", "n4").passages == 0


def test_the_short_notes_of_a_patient_are_read_completely(library):
    answers = library.ask("40 mg/20 mg/10 mg", filters={"patient": "p1"})
    assert (documents_and_texts(answers), answers.documents, answers.passages) == (
        [("n1", "40 mg"), ("n2", "20 mg")],
        2,
        5,
    )
    assert documents_and_texts(library.ask("40 mg/20 mg", filters=["date=2023"])) == [("n2", "20 mg")]
    answers = library.ask("40 mg", filters={"patient": "p9"})
    assert (len(answers), answers.passages) == (0, 0)
    assert "no document has patient=p9" in answers.notices[0]


def test_a_search_chooses_the_passages_of_a_whole_library(library):
    answers = library.ask("furosemide 10 mg/furosemide 20 mg", passages=2)
    assert answers.passages == 2
    assert documents_and_texts(answers)[0] == ("n3", "furosemide 10 mg")
    assert library.ask("zebra").passages == 0


def test_a_search_applies_filters_on_passages(library):
    answers = library.ask("10 mg", filters={"patient": "p2", "aspect": "diet"})
    assert [answer.headings for answer in answers] == [("DIET",)]


def test_a_search_chooses_the_passages_of_long_notes(library, monkeypatch):
    monkeypatch.setattr("capr.search.asking.WHOLE", 100)
    answers = library.ask("aspirin 81 mg", filters={"patient": "p1"}, passages=1)
    assert (answers.passages, documents_and_texts(answers)) == (1, [("n1", "aspirin 81 mg")])


def test_operators_mean_nothing_in_a_question(library):
    answers = library.ask('-zebra "furosemide 10 mg" patient:p2 +daily')
    assert answers.passages > 0
    assert asking.as_query('patient:p1 "a b" -x') == "patient p1  a b   x"


def test_a_library_takes_the_reader_of_the_call_or_of_its_opening(opened, monkeypatch, tmp_path):
    library = opened(encoder="none")
    library.add(NOTES)
    with pytest.raises(CaprError, match=r"there is no reader of answers in .*Fix: .*--reader"):
        library.ask("gout")
    assert library.ask("gout", reader=FakeReader()).answered
    monkeypatch.setattr(models, "_loaded_reader", lambda folder: FakeReader(0.1 if folder.name == "low" else 0.9))
    assert library.ask("gout", reader=tmp_path / "high").answered
    assert not opened(reader=tmp_path / "low").ask("gout").answered
    with pytest.raises(CaprError, match='the reader is "none"'):
        opened(reader="none").ask("gout")
    (tmp_path / "reader").mkdir()
    monkeypatch.setenv("CAPR_WEIGHTS", str(tmp_path))
    assert opened().ask("gout").answered


def test_invalid_options_of_a_library_are_refused(library):
    with pytest.raises(CaprError, match=r"passages is 0\. Fix: "):
        library.ask("gout", passages=0)
    with pytest.raises(CaprError, match="there is no question"):
        library.ask(" ")

"""Questions from the transcripts of visits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capr.documents import Document, Span
from capr.supervise.visits import Spoken, Turn, answering, gender_of, of_whom, spoken, turns, visit

NOTE = (
    "SUBJECTIVE:\r\nShe is a 58-year-old woman. She denies fevers, chills, and dyspnea. She has taken lisinopril 20 mg "
    "for 26 years. Two half-brothers, ages 26 and 28, both in good health."
)


def overlap(query, passages):
    """Scores by words, which is enough where the same ones are used."""
    words = set(query.lower().replace("?", " ").replace(".", " ").replace(",", " ").split())
    return [4.0 * len(words & set(passage.lower().replace(",", " ").replace(".", " ").split())) for passage in passages]


def test_lines_without_a_speaker_go_on_and_hesitation_is_left_out():
    said = turns(
        "[doctor] um , so , how 's your- your knee ?\n[patient] it , you know , hurts .\nuh a lot\n[doctor] okay ."
    )
    assert said == [
        Turn("doctor", "so, how's your knee?"), Turn("patient", "it, hurts. a lot"), Turn("doctor", "okay."),
    ]  # fmt: skip
    assert turns("") == []
    assert turns("no speaker at all") == [Turn("", "no speaker at all")]


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ("Okay, great. And do you have any chest pain?", "do you have any chest pain?"),
        ("Have you been feeling winded, sir?", "Have you been feeling winded?"),
        ("How are you doing today?", None),  # small talk
        ("Does that sound good to you?", None),
        ("Do you have any other questions?", None),
        ("Any pain?", None),  # too short to be understood without what was said before
        ("You have pneumonia.", None),
        ("Do you smoke at all? I hope not.", None),  # not what is answered
    ],
)
def test_questions_that_ask_for_something(asked, kept):
    found = list(spoken(f"Doctor: {asked}\nPatient: No."))
    assert [one.question for one in found] == ([kept] if kept else [])
    assert all(one.answer == "No." for one in found)


def test_a_question_without_an_answer_is_none():
    assert not list(spoken("Doctor: Do you have any chest pain?"))
    assert not list(spoken("Doctor: Do you have any chest pain?\nGuest_clinician: He has none."))
    assert not list(spoken("Doctor: Do you have any chest pain?\nPatient: \nDoctor: So?"))


@pytest.mark.parametrize(
    ("asked", "gender", "about"),
    [
        ("do you have any allergies?", "female", "Does she have any allergies?"),
        ("Did you take your pills yourself?", "male", "Did he take his pills himself?"),
        ("What brings you in?", "female", "What brings her in?"),
        ("How long have you had it?", "", "How long has the patient had it?"),
        ("Is it worse when you are lying down?", "male", "Is it worse when he is lying down?"),
        ("Does it keep you from working?", "female", "Does it keep her from working?"),
        ("Were you on your feet?", "", "Was the patient on the patient's feet?"),
        ("Is the knee swollen?", "male", "Is the knee swollen?"),
    ],
)
def test_who_is_asked_is_who_is_asked_about(asked, gender, about):
    assert of_whom(asked, gender) == about


def test_the_gender_is_what_most_words_say():
    assert gender_of("She saw her doctor, who said he was busy.") == "female"
    assert gender_of("This man") == "male"
    assert gender_of("No acute distress.") == ""


@pytest.mark.parametrize(
    ("question", "said", "sentence", "answer"),
    [
        ("How old are your brothers?", "Twenty six and twenty eight.", 4, "26 and 28"),
        ("What do you take for it?", "lisinopril, twenty milligrams", 3, "lisinopril 20"),
        ("Are you feeling short of breath or having chills?", "No, no chills.", 2, "denies fevers, chills"),
        ("How long have you had it?", "I take lisinopril.", 3, None),  # a time was asked for, and none was found
        ("Do you dance at home?", "Sometimes.", 2, None),
    ],
)
def test_the_words_that_answer(question, said, sentence, answer):
    begins = [NOTE.index(words) for words in ("SUBJ", "She is", "She denies", "She has", "Two half")]
    span = Span(begins[sentence], [*begins, len(NOTE)][sentence + 1]).trimmed(NOTE)
    found = answering(NOTE, span, Spoken(question, said))
    assert (found and found.of(NOTE)) == answer


def test_a_visit_is_asked_about_its_note():
    dialogue = (
        "Doctor: Do you have fevers or chills?\nPatient: No fevers, no chills.\n"
        "Doctor: How long have you taken lisinopril?\nPatient: Twenty six years.\n"
        "Doctor: Have you seen the new museum?\nPatient: Not yet."
    )
    report = visit(Document("n1", NOTE), dialogue, overlap)
    assert [(one.text, [span.of(NOTE) for span in one.answers]) for one in report.questions] == [
        ("Does she have fevers or chills?", ["denies fevers, chills"]),
        ("How long has she taken lisinopril?", ["26 years"]),
    ]
    assert len({one.id for one in report.questions}) == 2


def test_sentences_that_say_it_equally_well_do_not_answer():
    note = Document("n1", "She has a cough. She has a cough.")
    assert not visit(note, "Doctor: Do you have a cough?\nPatient: I have a cough.", overlap).questions


@pytest.mark.parametrize("text", ["", " \n", "Word"])
def test_a_note_without_sentences_is_asked_nothing(text):
    assert not visit(Document("n1", text), "Doctor: Do you have a cough?\nPatient: No.", overlap).questions


@given(st.text(alphabet="ab yn?.,:\n\r[]é🫀26", max_size=80), st.text(alphabet="ab yn?.,\n\ré🫀26", max_size=80))
def test_any_transcript_and_any_note(said, text):
    dialogue = f"Doctor: Do you have a b or {said}\nPatient: {said}\nDoctor: how many b are there?\nPatient: 26 a b"
    for one in visit(Document("n1", text), dialogue, overlap).questions:
        for span in one.answers:
            assert span.of(text).strip() == span.of(text) != ""

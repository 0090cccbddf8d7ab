"""Questions from the transcripts of visits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capr.documents import Document, Span
from capr.supervise.visits import (
    Exchange,
    Turn,
    about_patient,
    find_answer,
    find_exchanges,
    find_gender,
    report_of_visit,
    split_turns,
)

NOTE = (
    "SUBJECTIVE:\r\nShe is a 58-year-old woman. She denies fevers, chills, and dyspnea. She has taken lisinopril 20 mg "
    "for 26 years. Two half-brothers, ages 26 and 28, both in good health."
)


def count_shared_words(query, passages):
    """Score passages by the number of words that they share with the query."""
    words = set(query.lower().replace("?", " ").replace(".", " ").replace(",", " ").split())
    return [4.0 * len(words & set(passage.lower().replace(",", " ").replace(".", " ").split())) for passage in passages]


def test_joins_lines_without_a_speaker_and_drops_hesitation():
    turns = split_turns(
        "[doctor] um , so , how 's your- your knee ?\n[patient] it , you know , hurts .\nuh a lot\n[doctor] okay ."
    )
    assert turns == [
        Turn("doctor", "so, how's your knee?"),
        Turn("patient", "it, hurts. a lot"),
        Turn("doctor", "okay."),
    ]
    assert split_turns("") == []
    assert split_turns("no speaker at all") == [Turn("", "no speaker at all")]


@pytest.mark.parametrize(
    ("spoken", "expected"),
    [
        ("Okay, great. And do you have any chest pain?", "do you have any chest pain?"),
        ("Have you been feeling winded, sir?", "Have you been feeling winded?"),
        ("How are you doing today?", None),  # small talk
        ("Does that sound good to you?", None),
        ("Do you have any other questions?", None),
        ("Any pain?", None),  # too short to understand without its context
        ("You have pneumonia.", None),
        ("Do you smoke at all? I hope not.", None),  # the patient answers the last sentence
    ],
)
def test_keeps_questions_that_ask_for_information(spoken, expected):
    exchanges = list(find_exchanges(f"Doctor: {spoken}\nPatient: No."))
    assert [exchange.question for exchange in exchanges] == ([expected] if expected else [])
    assert all(exchange.answer == "No." for exchange in exchanges)


def test_drops_a_question_without_an_answer():
    assert not list(find_exchanges("Doctor: Do you have any chest pain?"))
    assert not list(find_exchanges("Doctor: Do you have any chest pain?\nGuest_clinician: He has none."))
    assert not list(find_exchanges("Doctor: Do you have any chest pain?\nPatient: \nDoctor: So?"))


@pytest.mark.parametrize(
    ("question", "gender", "expected"),
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
def test_turns_a_question_to_the_patient_into_one_about_the_patient(question, gender, expected):
    assert about_patient(question, gender) == expected


def test_finds_the_gender_of_most_pronouns():
    assert find_gender("She saw her doctor, who said he was busy.") == "female"
    assert find_gender("This man") == "male"
    assert find_gender("No acute distress.") == ""


@pytest.mark.parametrize(
    ("question", "reply", "sentence", "expected"),
    [
        ("How old are your brothers?", "Twenty six and twenty eight.", 4, "26 and 28"),
        ("What do you take for it?", "lisinopril, twenty milligrams", 3, "lisinopril 20"),
        ("Are you feeling short of breath or having chills?", "No, no chills.", 2, "denies fevers, chills"),
        (
            "How long have you had it?",
            "I take lisinopril.",
            3,
            None,
        ),  # the question asks for a time, and the sentence has none
        ("Do you dance at home?", "Sometimes.", 2, None),
    ],
)
def test_finds_the_words_that_answer(question, reply, sentence, expected):
    begins = [NOTE.index(words) for words in ("SUBJ", "She is", "She denies", "She has", "Two half")]
    span = Span(begins[sentence], [*begins, len(NOTE)][sentence + 1]).trimmed(NOTE)
    actual = find_answer(NOTE, span, Exchange(question, reply))
    assert (actual and actual.of(NOTE)) == expected


def test_makes_questions_about_the_note_of_a_visit():
    dialogue = (
        "Doctor: Do you have fevers or chills?\nPatient: No fevers, no chills.\n"
        "Doctor: How long have you taken lisinopril?\nPatient: Twenty six years.\n"
        "Doctor: Have you seen the new museum?\nPatient: Not yet."
    )
    report = report_of_visit(Document("n1", NOTE), dialogue, count_shared_words)
    assert [(question.text, [span.of(NOTE) for span in question.answers]) for question in report.questions] == [
        ("Does she have fevers or chills?", ["denies fevers, chills"]),
        ("How long has she taken lisinopril?", ["26 years"]),
    ]
    assert len({question.id for question in report.questions}) == 2


def test_equally_good_sentences_do_not_answer():
    note = Document("n1", "She has a cough. She has a cough.")
    assert not report_of_visit(
        note, "Doctor: Do you have a cough?\nPatient: I have a cough.", count_shared_words
    ).questions


@pytest.mark.parametrize("text", ["", " \n", "Word"])
def test_a_note_without_sentences_gets_no_questions(text):
    assert not report_of_visit(
        Document("n1", text), "Doctor: Do you have a cough?\nPatient: No.", count_shared_words
    ).questions


@given(st.text(alphabet="ab yn?.,:\n\r[]é🫀26", max_size=80), st.text(alphabet="ab yn?.,\n\ré🫀26", max_size=80))
def test_answers_are_trimmed_for_any_transcript_and_note(speech, text):
    dialogue = f"Doctor: Do you have a b or {speech}\nPatient: {speech}\nDoctor: how many b are there?\nPatient: 26 a b"
    for question in report_of_visit(Document("n1", text), dialogue, count_shared_words).questions:
        for span in question.answers:
            assert span.of(text).strip() == span.of(text) != ""

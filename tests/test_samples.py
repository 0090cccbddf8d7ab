"""The sample corpus is what it says it is."""

from collections import Counter

import pytest

import capr
from capr.segment import passages


@pytest.fixture(scope="module")
def documents():
    return {document.id: document for document in capr.samples.documents()}


@pytest.fixture(scope="module")
def questions():
    return capr.samples.questions()


def test_notes_have_patients_dates_and_types(documents):
    notes = [document for document in documents.values() if document.metadata["source"] == "notes"]
    assert len(notes) == 70
    assert len({note.metadata["patient"] for note in notes}) == 30
    types = Counter(note.metadata["type"] for note in notes)
    assert set(types) >= {
        "Discharge summary",
        "Admission note",
        "Radiology report",
        "Operative report",
        "Clinic letter",
    }
    assert all(len(note.metadata["date"]) == 10 for note in notes)
    assert any("\r\n" in note.text for note in notes)


def test_articles_have_sections(documents):
    articles = [document for document in documents.values() if document.metadata["source"] == "articles"]
    assert len(articles) == 32
    assert all(len(article.annotated("section")) >= 5 for article in articles)


def test_every_answer_is_where_it_says(documents, questions):
    assert len(questions) == 319
    for question in questions:
        assert (question.question is None) == (question.entity is not None) == (question.aspect is not None)
        for answer in question.answers:
            document = documents[answer.document]
            assert document[answer.span] == answer.text
            assert answer.passage.covers(answer.span)
            assert answer.text == answer.text.strip()
            assert document.metadata["source"] == question.collection
            assert question.patient in (None, document.metadata.get("patient"))


def test_there_are_questions_of_every_kind(questions):
    assert sum(question.entity is not None for question in questions) >= 75
    assert sum(question.question is not None for question in questions) >= 75
    assert sum(not question.answers for question in questions) >= 30


def test_answers_lie_within_passages(documents, questions):
    """Sections, sentences and passages are cut well enough that few gold answers are torn apart."""
    cut = {identifier: passages(document) for identifier, document in documents.items()}
    answers = [answer for question in questions for answer in question.answers]
    whole = sum(any(p.span.covers(a.span) for p in cut[a.document]) for a in answers)
    assert whole / len(answers) >= 0.98

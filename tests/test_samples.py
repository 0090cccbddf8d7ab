"""The sample corpus has the documents, questions and answers that it describes."""

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


def test_the_text_of_every_answer_is_at_its_span(documents, questions):
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


def test_every_kind_of_question_is_frequent(questions):
    assert sum(question.entity is not None for question in questions) >= 75
    assert sum(question.question is not None for question in questions) >= 75
    assert sum(not question.answers for question in questions) >= 30


def test_answers_lie_within_passages(documents, questions):
    """Check that passages cut few gold answers."""
    passages_by_id = {id: passages(document) for id, document in documents.items()}
    answers = [answer for question in questions for answer in question.answers]
    covered = sum(
        any(passage.span.covers(answer.span) for passage in passages_by_id[answer.document]) for answer in answers
    )
    assert covered / len(answers) >= 0.98

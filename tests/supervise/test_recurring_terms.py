"""Questions with a blank, from plain documents."""

from capr import samples
from capr.documents import Document
from capr.supervise.recurring_terms import BLANK, recurring_term_reports

TEXT = (
    "Warfarin was given for atrial fibrillation at home.\r\n"
    "She was then well for some years, without any 🫀 trouble.\n"
    "The atrial fibrillation came back in the spring of that year.\n"
    "Metoprolol controls her Atrial  Fibrillation since then, and she is well."
)


def test_replaces_a_term_that_occurs_in_the_rest_of_the_document():
    (report,) = recurring_term_reports([Document("d", TEXT, "Note", {"patient": "7"})], questions=1)
    (question,) = report.questions
    assert question.text.count(BLANK) == 1
    assert [report.document[answer].lower().split() for answer in question.answers] == [["atrial", "fibrillation"]] * 2
    assert question.text.replace(BLANK, "atrial fibrillation").lower() not in report.document.text.lower()
    assert report.document.metadata == {"patient": "7"}
    assert report.document.id == "d spans"


def test_the_answers_of_samples_fill_the_blank():
    documents = samples.documents()
    by_id = {f"{document.id} spans": document.text for document in documents}
    reports = list(recurring_term_reports(documents, questions=4))
    assert len(reports) > 0.9 * len(documents)
    for report in reports:
        assert 1 <= len(report.questions) <= 4
        assert len({question.id for question in report.questions}) == len(report.questions)
        original = normalise(by_id[report.document.id])
        for question in report.questions:
            before, after = question.text.split(BLANK)
            assert before + after not in report.document.text
            (term,) = {normalise(report.document[answer]) for answer in question.answers}
            assert normalise(before + term + after) in original


def normalise(text: str) -> str:
    return " ".join(text.lower().split())


def test_one_seed_gives_the_same_questions():
    documents = samples.documents()[:10]
    assert list(recurring_term_reports(documents, seed=3)) == list(recurring_term_reports(documents, seed=3))
    assert list(recurring_term_reports(documents, seed=3)) != list(recurring_term_reports(documents, seed=4))


def test_documents_without_recurring_terms_yield_no_report():
    assert list(recurring_term_reports([Document("a", ""), Document("b", "Rest."), Document("c", "x" * 10_000)])) == []

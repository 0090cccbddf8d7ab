"""Questions with a blank, out of plain documents."""

from capr import samples
from capr.documents import Document
from capr.supervise.spans import BLANK, recurring

TEXT = (
    "Warfarin was given for atrial fibrillation at home.\r\n"
    "She was then well for some years, without any 🫀 trouble.\n"
    "The atrial fibrillation came back in the spring of that year.\n"
    "Metoprolol controls her Atrial  Fibrillation since then, and she is well."
)


def test_a_sentence_loses_a_term_that_the_rest_of_the_document_has():
    (report,) = recurring([Document("d", TEXT, "Note", {"patient": "7"})], questions=1)
    (asked,) = report.questions
    assert asked.text.count(BLANK) == 1
    assert [report.document[answer].lower().split() for answer in asked.answers] == [["atrial", "fibrillation"]] * 2
    assert asked.text.replace(BLANK, "atrial fibrillation").lower() not in report.document.text.lower()
    assert report.document.metadata == {"patient": "7"}
    assert report.document.id == "d spans"


def test_the_samples_give_questions_whose_answers_fill_the_blank():
    documents = samples.documents()
    by_id = {f"{document.id} spans": document.text for document in documents}
    reports = list(recurring(documents, questions=4))
    assert len(reports) > 0.9 * len(documents)
    for report in reports:
        assert 1 <= len(report.questions) <= 4
        assert len({asked.id for asked in report.questions}) == len(report.questions)
        original = plain(by_id[report.document.id])
        for asked in report.questions:
            before, after = asked.text.split(BLANK)
            assert before + after not in report.document.text
            (filling,) = {plain(report.document[answer]) for answer in asked.answers}
            assert plain(before + filling + after) in original


def plain(text: str) -> str:
    return " ".join(text.lower().split())


def test_the_same_seed_draws_the_same():
    documents = samples.documents()[:10]
    assert list(recurring(documents, seed=3)) == list(recurring(documents, seed=3))
    assert list(recurring(documents, seed=3)) != list(recurring(documents, seed=4))


def test_documents_in_which_nothing_recurs_give_none():
    assert list(recurring([Document("a", ""), Document("b", "Rest."), Document("c", "x" * 10_000)])) == []

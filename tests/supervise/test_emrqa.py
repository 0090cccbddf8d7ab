"""emrQA as PAR-emrQA and CliniRC filter it, on a file in its exact format."""

import random
from pathlib import Path

import pytest

import capr
from capr.documents import CaprError, Document, Span
from capr.segment.paragraphs import Paragraphs, count_headings
from capr.supervise import emrqa
from capr.supervise.reports import Asked, Report, reports, write_squad

FILE = Path(__file__).parent / "emrqa.json"


@pytest.fixture
def read():
    def read_as(occurrence="nearest"):
        return {report.document.id: report for report in reports(capr.read(FILE), occurrence)}

    return read_as


def answers(report, words):
    (asked,) = [asked for asked in report.questions if asked.text == words]
    return [(span.begin, report.document[span]) for span in asked.answers]


def test_only_medication_and_relations_are_kept(read):
    assert list(read()) == ["medication/0001", "medication/0002", "relations/0003"]
    assert read()["medication/0002"].questions == ()


def test_the_text_is_normalised(read):
    text = read()["medication/0001"].document.text
    assert text.startswith(
        "ADMISSION DATE : 01/02/2003 MEDICATIONS ON ADMISSION: Aspirin 81 mg daily and lisinopril 20 mg"
    )
    assert "The patient's chest pain was treated with nitroglycerin. Aspirin was continued at discharge." in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("raw", "pruned"),
    [
        ("a_b  c", "a b c"),
        ("&lt; 5 &amp; &gt; 3&nbsp;x &apos; s &quot;q&quot;", "< 5 & > 3 x' s q"),
        ("one , two .", "one, two."),
        ("( one ) two ?", "( one) two?"),
        ("no .5 here", "no .5 here"),
        ("end..., really?!", "end, really!"),
        ('"', ""),
    ],
)
def test_signs_are_cleaned_as_clinirc_does(raw, pruned):
    assert emrqa.prune(raw) == pruned


def test_every_paraphrase_is_a_question_with_its_own_id(read):
    asked = read()["medication/0001"].questions
    assert [one.text for one in asked[:2]] == ["How much aspirin does the patient take", "What is the dose of aspirin"]
    assert asked[0].answers == asked[1].answers
    assert len({one.id for one in asked}) == len(asked) == 5


def test_the_nearest_or_the_first_occurrence_counts(read):
    text = read()["medication/0001"].document.text
    line = "Aspirin 81 mg daily and lisinopril"
    words = "How much aspirin does the patient take"
    assert answers(read()["medication/0001"], words) == [(text.rindex(line), line)]
    assert answers(read("first")["medication/0001"], words) == [(text.index(line), line)]


def test_an_answer_at_the_beginning_counts_only_in_par_emrqa(read):
    words = "When was the patient admitted"
    assert answers(read()["medication/0001"], words) == [(0, "ADMISSION DATE : 01/02/2003")]
    assert words not in [asked.text for asked in read("first")["medication/0001"].questions]


def test_complex_answers_are_left_out(read):
    report = read()["medication/0001"]
    assert [words for _, words in answers(report, "What is nitroglycerin for")] == [
        "The patient's chest pain was treated with nitroglycerin"
    ]
    assert "Only complex answers" not in [asked.text for asked in report.questions]


def test_last_words_are_dropped_until_the_rest_is_found(read):
    found = answers(read()["medication/0001"], "Evidence whose end is not in the note")
    assert [words for _, words in found] == ["DISPOSITION: home"]


def test_long_answers_are_left_out():
    line = " ".join(f"word{i}" for i in range(20))
    for words, kept in ((line, False), (line.rsplit(" ", 1)[0], True)):
        answer = {"evidence": words, "evidence_start": 1, "answer_entity_type": "single"}
        assert (emrqa._locate(answer, f"x {words}", [f"x {words}\n"], "nearest") is not None) == kept


def test_headings_are_marked_in_the_normalised_text(read):
    for id, headings in {
        "medication/0001": ["ADMISSION DATE", "MEDICATIONS ON ADMISSION", "HOSPITAL COURSE", "DISPOSITION"],
        "relations/0003": ["PRESENT ILLNESS", "LABS"],
    }.items():
        document = read()[id].document
        marked = document.annotated("section")
        assert [mark.value["heading"] for mark in marked] == headings
        for mark in marked:
            assert document.text.startswith(mark.value["heading"], mark.span.begin)


def test_paragraphs_follow_the_headings(read):
    document = read()["medication/0001"].document
    counts = count_headings([document])
    cut = Paragraphs("heading", counts=counts, threshold=1)(document)
    assert "".join(document[span] for span in cut) == document.text
    assert [document[span].split(":")[0] for span in cut[1:]] == [
        "MEDICATIONS ON ADMISSION",
        "HOSPITAL COURSE",
        "DISPOSITION",
    ]
    assert len(Paragraphs("heading", counts=counts, threshold=2)(document)) == 1


def test_it_can_be_written_and_read_as_squad(read, tmp_path):
    found = list(read().values())
    write_squad(found, tmp_path / "emrqa.json")
    again = list(reports(capr.read(tmp_path / "emrqa.json")))
    assert [report.questions for report in again] == [report.questions for report in found]
    assert [report.document.text for report in again] == [report.document.text for report in found]
    assert [report.document.annotations for report in again] == [report.document.annotations for report in found]


def test_an_unknown_occurrence_is_refused():
    with pytest.raises(CaprError, match="Fix: use one of nearest, first"):
        emrqa.report(Document("n", "text", "medication"), "last")


def notes(title, count):
    questions = tuple(Asked(f"{title}{i}", "?", (Span(0, 1),)) for i in range(30))
    return [Report(Document(f"{title}/{i}", "text", title), questions) for i in range(count)]


def test_notes_are_split_as_the_published_scripts_do():
    medication, relations = notes("medication", 26), notes("relations", 31)
    found = emrqa.split([*relations, *medication], seed=55)
    random.seed(55)  # the published scripts use the global generator
    for title, listed, share in (("medication", medication, 0.2), ("relations", relations, 0.05)):
        size = len(listed)
        order = random.sample(range(size), size)
        train, validation = int(0.7 * size), int(0.1 * size)
        expected = [listed[i] for i in order]
        assert found[title].train == expected[:train]
        assert found[title].validation == expected[train : train + validation]
        assert found[title].test == expected[train + validation :]
        for report in expected[:train]:
            random.choices(list(range(len(report.questions))), k=int(len(report.questions) * share))


def test_other_reports_are_not_split_so():
    with pytest.raises(CaprError, match="'smoking/0' is not of emrQA"):
        emrqa.split(notes("smoking", 1))

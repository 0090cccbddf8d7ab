"""emrQA's notes through the filters of PAR-emrQA and CliniRC, from a file in emrQA's format."""

import random
from pathlib import Path

import pytest

import capr
from capr.documents import CaprError, Document, Span
from capr.segment.paragraphs import Paragraphs, count_headings
from capr.supervise import emrqa
from capr.supervise.reports import Report, ReportQuestion, reports, write_squad

FILE = Path(__file__).parent / "emrqa.json"


@pytest.fixture
def read():
    def read_with(occurrence="nearest"):
        return {report.document.id: report for report in reports(capr.read(FILE), occurrence)}

    return read_with


def answers_to(report, wording):
    (question,) = [question for question in report.questions if question.text == wording]
    return [(span.begin, report.document[span]) for span in question.answers]


def test_keeps_only_medication_and_relations(read):
    assert list(read()) == ["medication/0001", "medication/0002", "relations/0003"]
    assert read()["medication/0002"].questions == ()


def test_normalises_the_text(read):
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
def test_cleans_signs_as_clinirc_does(raw, pruned):
    assert emrqa.prune(raw) == pruned


def test_each_paraphrase_is_a_question_with_its_own_id(read):
    questions = read()["medication/0001"].questions
    assert [question.text for question in questions[:2]] == [
        "How much aspirin does the patient take",
        "What is the dose of aspirin",
    ]
    assert questions[0].answers == questions[1].answers
    assert len({question.id for question in questions}) == len(questions) == 5


def test_takes_the_nearest_or_the_first_occurrence(read):
    text = read()["medication/0001"].document.text
    line = "Aspirin 81 mg daily and lisinopril"
    words = "How much aspirin does the patient take"
    assert answers_to(read()["medication/0001"], words) == [(text.rindex(line), line)]
    assert answers_to(read("first")["medication/0001"], words) == [(text.index(line), line)]


def test_only_par_emrqa_accepts_an_answer_at_the_beginning(read):
    wording = "When was the patient admitted"
    assert answers_to(read()["medication/0001"], wording) == [(0, "ADMISSION DATE : 01/02/2003")]
    assert wording not in [question.text for question in read("first")["medication/0001"].questions]


def test_drops_complex_answers(read):
    report = read()["medication/0001"]
    assert [words for _, words in answers_to(report, "What is nitroglycerin for")] == [
        "The patient's chest pain was treated with nitroglycerin"
    ]
    assert "Only complex answers" not in [question.text for question in report.questions]


def test_drops_last_words_until_the_text_contains_the_rest(read):
    answers = answers_to(read()["medication/0001"], "Evidence whose end is not in the note")
    assert [words for _, words in answers] == ["DISPOSITION: home"]


def test_drops_long_answers():
    line = " ".join(f"word{i}" for i in range(20))
    for words, is_kept in ((line, False), (line.rsplit(" ", 1)[0], True)):
        answer = {"evidence": words, "evidence_start": 1, "answer_entity_type": "single"}
        assert (emrqa._locate(answer, f"x {words}", [f"x {words}\n"], "nearest") is not None) == is_kept


def test_marks_headings_in_the_normalised_text(read):
    for id, headings in {
        "medication/0001": ["ADMISSION DATE", "MEDICATIONS ON ADMISSION", "HOSPITAL COURSE", "DISPOSITION"],
        "relations/0003": ["PRESENT ILLNESS", "LABS"],
    }.items():
        document = read()[id].document
        sections = document.annotated("section")
        assert [section.value["heading"] for section in sections] == headings
        for section in sections:
            assert document.text.startswith(section.value["heading"], section.span.begin)


def test_cuts_paragraphs_at_the_headings(read):
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


def test_reads_back_the_squad_file_that_it_wrote(read, tmp_path):
    expected = list(read().values())
    write_squad(expected, tmp_path / "emrqa.json")
    actual = list(reports(capr.read(tmp_path / "emrqa.json")))
    assert [report.questions for report in actual] == [report.questions for report in expected]
    assert [report.document.text for report in actual] == [report.document.text for report in expected]
    assert [report.document.annotations for report in actual] == [report.document.annotations for report in expected]


def test_rejects_an_unknown_occurrence():
    with pytest.raises(CaprError, match="Fix: use one of nearest, first"):
        emrqa.report(Document("n", "text", "medication"), "last")


def notes(title, count):
    questions = tuple(ReportQuestion(f"{title}{i}", "?", (Span(0, 1),)) for i in range(30))
    return [Report(Document(f"{title}/{i}", "text", title), questions) for i in range(count)]


def test_splits_notes_as_the_published_scripts_do():
    medication, relations = notes("medication", 26), notes("relations", 31)
    splits = emrqa.split([*relations, *medication], seed=55)
    random.seed(55)  # the published scripts use the global generator
    for title, part_notes, share in (("medication", medication, 0.2), ("relations", relations, 0.05)):
        size = len(part_notes)
        order = random.sample(range(size), size)
        train_size, validation_size = int(0.7 * size), int(0.1 * size)
        shuffled = [part_notes[index] for index in order]
        assert splits[title].train == shuffled[:train_size]
        assert splits[title].validation == shuffled[train_size : train_size + validation_size]
        assert splits[title].test == shuffled[train_size + validation_size :]
        for report in shuffled[:train_size]:
            random.choices(list(range(len(report.questions))), k=int(len(report.questions) * share))


def test_rejects_the_split_of_other_reports():
    with pytest.raises(CaprError, match="'smoking/0' is not a note of emrQA"):
        emrqa.split(notes("smoking", 1))

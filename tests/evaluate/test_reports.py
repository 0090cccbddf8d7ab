"""The three tasks of the paragraph-QA paper, with a fake reader."""

import json
import sys

import pytest
from typer.testing import CliRunner

import capr.search.models
from capr.cli import typer_app
from capr.documents import CaprError, Document, Span
from capr.evaluate.report_plots import plot_lengths, plot_reliability
from capr.evaluate.reports import limited, measure, over_lengths, spreads
from capr.runtime.reader import ReadAnswer
from capr.segment import Paragraphs
from capr.supervise.reports import Report, ReportQuestion, write_squad

TEXT = "PLAN:\nStart aspirin 81 mg.\n\nALLERGIES:\nNone known.\n\nMEDICATIONS:\nAspirin 81 mg daily.\n"


def span_of(words, text=TEXT, last=False):
    begin = text.rindex(words) if last else text.index(words)
    return Span(begin, begin + len(words))


REPORT = Report(
    Document("r1", TEXT),
    (
        ReportQuestion("dose", "aspirin ?", (span_of("81 mg"), span_of("81 mg daily"))),
        ReportQuestion("allergy", "known ?", (span_of("None known"),)),
        ReportQuestion("warfarin", "warfarin ?", ()),
    ),
)


class FakeReader:
    """Answers with the text from the question's first word to the full stop; the earlier, the more confident."""

    def __init__(self, name="fake", confidence=0.9, threshold=0.5):
        self.name, self.confidence, self.threshold = name, confidence, threshold
        self.calls = []

    def read(self, question, paragraphs, best=1):
        self.calls.append((question, list(paragraphs)))
        return [self._best(question.split()[0], text) for text in paragraphs]

    def _best(self, word, text):
        if not text.strip():
            return []
        begin = text.lower().find(word)
        if begin < 0:
            return [ReadAnswer(Span(0, 1), 0.1)]
        end = text.find(".", begin)
        return [ReadAnswer(Span(begin, end), self.confidence - begin / 1000)]


@pytest.fixture
def outcomes():
    return {outcome.question: outcome for outcome in measure(FakeReader(), [REPORT], Paragraphs()).outcomes}


def test_the_answer_of_the_most_confident_paragraph_counts(outcomes):
    dose = outcomes["dose"]
    assert dose.answer == "aspirin 81 mg"
    assert TEXT[dose.span.begin : dose.span.end] == dose.answer
    assert dose.rank == 1
    assert dose.exact == 0
    assert dose.f1 == pytest.approx(0.8)  # with `81 mg`: 2 of 3 and 2 of 2
    assert dose.confidence == pytest.approx(0.9 - 0.012)


def test_the_rank_is_that_of_the_first_gold_paragraph():
    report = Report(REPORT.document, (ReportQuestion("daily", "aspirin ?", (span_of("daily"),)),))
    (outcome,) = measure(FakeReader(), [report], Paragraphs()).outcomes
    assert outcome.rank == 2  # the plan is read with more confidence
    assert outcome.answer == "aspirin 81 mg"
    assert outcome.f1 == 0
    assert outcome.oracle_f1 == pytest.approx(2 * (1 / 4) / (1 + 1 / 4))


def test_measures_equal_hand_values():
    measured = measure(FakeReader(), [REPORT], Paragraphs())
    measures = measured.measures
    assert measures["P@1"] == measures["P@2"] == measures["P@3"] == 1
    assert measures["PR-QA EM"] == 0
    assert measures["PR-QA F1"] == pytest.approx((0.8 + 2 / 3) / 2)  # `known` of `None known`
    assert measures["Oracle-QA F1"] == measures["PR-QA F1"]
    assert measures["answered"] == 1
    assert measures["refused"] == 1
    assert measures["ECE"] == pytest.approx(((1 - 0.888) + (1 - 0.884) + 0.1) / 3)  # two right, one wrong
    assert measured.length == pytest.approx(len(TEXT) / 3)


def test_the_threshold_decides_what_is_refused():
    strict = measure(FakeReader(threshold=0.95), [REPORT], Paragraphs()).measures
    assert (strict["answered"], strict["refused"]) == (0, 1)
    lax = measure(FakeReader(threshold=0.05), [REPORT], Paragraphs()).measures
    assert (lax["answered"], lax["refused"]) == (1, 0)


def test_a_reader_sees_all_paragraphs_of_the_report():
    reader = FakeReader()
    measure(reader, [REPORT], Paragraphs("whole"))
    assert reader.calls == [(question.text, [TEXT]) for question in REPORT.questions]


def test_measures_without_questions_are_missing():
    answerable = Report(REPORT.document, REPORT.questions[:2])
    assert "refused" not in measure(FakeReader(), [answerable], Paragraphs()).measures
    unanswerable = Report(REPORT.document, REPORT.questions[2:])
    assert set(measure(FakeReader(), [unanswerable], Paragraphs()).measures) == {"refused", "ECE"}


def test_an_empty_report_has_no_answer():
    empty = Report(Document("r2", " \n"), (ReportQuestion("q", "aspirin ?", ()),))
    (outcome,) = measure(FakeReader(), [empty], Paragraphs()).outcomes
    assert (outcome.span, outcome.answer, outcome.confidence, outcome.rank) == (None, "", 0, 0)


def test_no_border_cuts_an_answer():
    for length in range(5, 60, 5):
        reader = FakeReader()
        measure(reader, [REPORT], Paragraphs("uniform", length))
        _, paragraphs = reader.calls[0]
        assert any("81 mg daily" in text for text in paragraphs)
        assert any("None known" in text for text in paragraphs)


def test_both_ways_to_cut_over_lengths_with_several_readers():
    done = []
    readers = [FakeReader("one"), FakeReader("two", confidence=0.7)]
    measured = over_lengths(readers, [REPORT], [20, 40, 1000], progress=lambda *pair: done.append(pair))
    assert len(measured) == 2 * 2 * 3
    assert done[-1] == (36, 36)
    assert [pair[0] for pair in done] == list(range(1, 37))
    groups = spreads(measured)
    assert [group.cut for group in groups] == ["heading"] * 3 + ["uniform"] * 3
    for group in groups:
        results = [result for result in measured if (result.cut, result.length) == (group.cut, group.length)]
        values = [result.measures["answered"] for result in results]
        assert group.readers == ("one", "two")
        spread = (group.lowest["answered"], group.mean["answered"], group.highest["answered"])
        assert spread == (min(values), sum(values) / len(values), max(values))


def test_limits_count_questions():
    two = [REPORT, Report(Document("r2", "x"), ()), REPORT]
    assert [len(report.questions) for report in limited(two, 4)] == [3, 1]
    assert [len(report.questions) for report in limited(two, 0)] == [3, 3]


@pytest.mark.parametrize(("name", "begin"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml")])
def test_pictures_are_written(tmp_path, name, begin):
    measured = over_lengths([FakeReader("one"), FakeReader("two", 0.7)], [REPORT], [20, 40])
    plot_lengths(tmp_path / name, measured)
    assert (tmp_path / name).read_bytes().startswith(begin)
    plot_reliability(tmp_path / name, measured[:2])
    assert (tmp_path / name).read_bytes().startswith(begin)


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.setattr(capr.search.models, "answer_reader", lambda name: FakeReader(str(name or "reader")))
    monkeypatch.chdir(tmp_path)
    write_squad([REPORT], tmp_path / "data.json")

    def run_command(*arguments):
        result = CliRunner().invoke(typer_app, ["evaluate", "reports", *map(str, arguments)], env={"COLUMNS": "80"})
        if isinstance(result.exception, CaprError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.stdout

    return run_command


def test_the_command_prints_the_measures(run):
    report = json.loads(run("--data", "data.json", "--json"))
    assert (report["model"], report["cut"], report["answerable"], report["unanswerable"]) == ("reader", "passage", 2, 1)
    assert report["measures"] == measure(FakeReader("reader"), [REPORT], Paragraphs("passage")).measures
    printed = run("--data", "data.json")
    assert "3 questions, 1 without an answer, about 1 report, in %" in printed
    assert "73.3" in printed
    assert "…" not in printed
    assert max(map(len, printed.splitlines())) <= 80


@pytest.mark.parametrize("cut", ["passage", "heading", "uniform", "whole"])
def test_the_command_cuts_in_every_way(run, cut):
    report = json.loads(run("--data", "data.json", "--json", "--cut", cut))
    assert report["cut"] == cut
    if cut != "whole":
        shorter = json.loads(run("--data", "data.json", "--json", "--cut", cut, "--length", 20))
        assert shorter["length"] <= report["length"]


def test_the_command_draws_lengths(run, tmp_path):
    options = ("--model", "a", "--model", "b", "--lengths", "20,40", "--plot", "p.png", "--per-question", "q.jsonl")
    lines = [json.loads(line) for line in run("--data", "data.json", *options, "--json").splitlines()]
    assert [(line["model"], line["cut"]) for line in lines[:8]] == [
        (model, cut) for model in "ab" for cut in ("heading", "heading", "uniform", "uniform")
    ]
    assert [(line["models"], line["cut"]) for line in lines[8:]] == [
        (["a", "b"], cut) for cut in ("heading", "heading", "uniform", "uniform")
    ]
    assert lines[8]["mean"] == lines[0]["measures"]
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    outcomes = [json.loads(line) for line in (tmp_path / "q.jsonl").read_text().splitlines()]
    assert len(outcomes) == 8 * 3
    for line in outcomes:
        assert TEXT[line["begin"] : line["end"]] == line["answer"]
    shown = run("--data", "data.json", *options)
    assert "…" not in shown
    assert "mean of 2 models, lowest and highest" in shown
    assert shown.count("lowest") == 1 + 4


def test_missing_matplotlib_is_reported_before_any_work(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    arguments = ["evaluate", "reports", "--data", "missing.json", "--plot", "p.png"]
    result = CliRunner().invoke(typer_app, arguments)
    fact = "a plot needs matplotlib, which is not installed. Fix: pip install 'capr[evaluate]'."
    assert str(result.exception) == fact


def test_the_samples_can_be_the_data(run):
    report = json.loads(run("--data", "samples", "--limit", 5, "--json"))
    assert report["answerable"] + report["unanswerable"] == 5
    test_report = json.loads(run("--data", "samples", "--part", "test", "--json"))
    assert 20 < test_report["answerable"] < 80


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--cut", "page"), "--cut does not accept 'page'"),
        (("--part", "dev"), "--part does not accept 'dev'"),
        (("--lengths", "20,x"), "is not a list of numbers"),
        (("--lengths", "20", "--length", 30), "exclude each other"),
        (("--cut", "whole", "--length", 30), "has no length"),
        (("--plot", "a.pdf"), "is not a picture"),
    ],
)
def test_bad_options_are_reported(run, options, message):
    with pytest.raises(CaprError, match=message) as caught:
        run("--data", "data.json", *options)
    assert "Fix: " in str(caught.value)


def test_plain_text_has_no_questions(run, tmp_path):
    (tmp_path / "a.txt").write_text("Lisinopril 20 mg daily.")
    (tmp_path / "b.txt").write_text("Chest pain.")
    with pytest.raises(CaprError, match=r"has plain text without questions, .* Fix: make questions .* capr questions "):
        run("--data", "a.txt", "--data", "b.txt")


def test_data_without_questions_are_reported(run, tmp_path):
    write_squad([Report(Document("r", "text"), ())], tmp_path / "none.json")
    with pytest.raises(CaprError, match=r"no question to ask\. Fix: "):
        run("--data", "none.json")
    with pytest.raises(CaprError, match="Fix: "):
        run("--data", "missing.json")


def test_the_default_model_is_the_built_in_reader(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    write_squad([REPORT], tmp_path / "data.json")
    monkeypatch.setenv("CAPR_WEIGHTS", str(tmp_path))
    result = CliRunner().invoke(typer_app, ["evaluate", "reports", "--data", "data.json"])
    assert isinstance(result.exception, CaprError)
    assert f"there is no reader of answers in {tmp_path / 'reader'}. Fix: " in str(result.exception)

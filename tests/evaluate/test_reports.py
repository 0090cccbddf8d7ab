"""The three tasks of the paragraph-QA paper, with a reader whose answers are known."""

import json

import pytest
from typer.testing import CliRunner

import capr.search.models
from capr.cli import typer_app
from capr.documents import CaprError, Document, Span
from capr.evaluate.report_plots import plot_lengths, plot_reliability
from capr.evaluate.reports import limited, measure, over_lengths, spreads
from capr.search.reader import Reading
from capr.segment import Paragraphs
from capr.supervise.reports import Asked, Report, write_squad

TEXT = "PLAN:\nStart aspirin 81 mg.\n\nALLERGIES:\nNone known.\n\nMEDICATIONS:\nAspirin 81 mg daily.\n"


def at(words, text=TEXT, last=False):
    begin = text.rindex(words) if last else text.index(words)
    return Span(begin, begin + len(words))


REPORT = Report(
    Document("r1", TEXT),
    (
        Asked("dose", "aspirin ?", (at("81 mg"), at("81 mg daily"))),
        Asked("allergy", "known ?", (at("None known"),)),
        Asked("warfarin", "warfarin ?", ()),
    ),
)


class FakeReader:
    """Finds the first word of the question, and answers with it and what follows; `sure` where it stands first."""

    def __init__(self, name="fake", sure=0.9, threshold=0.5):
        self.name, self.sure, self.threshold = name, sure, threshold
        self.asked = []

    def read(self, question, paragraphs, best=1):
        self.asked.append((question, list(paragraphs)))
        return [self._best(question.split()[0], text) for text in paragraphs]

    def _best(self, word, text):
        if not text.strip():
            return []
        begin = text.lower().find(word)
        if begin < 0:
            return [Reading(Span(0, 1), 0.1)]
        end = text.find(".", begin)
        return [Reading(Span(begin, end), self.sure - begin / 1000)]


@pytest.fixture
def outcomes():
    return {one.question: one for one in measure(FakeReader(), [REPORT], Paragraphs()).outcomes}


def test_the_answer_of_the_most_confident_paragraph_counts(outcomes):
    dose = outcomes["dose"]
    assert dose.answer == "aspirin 81 mg"
    assert TEXT[dose.span.begin : dose.span.end] == dose.answer
    assert dose.rank == 1
    assert dose.exact == 0
    assert dose.f1 == pytest.approx(0.8)  # with `81 mg`: 2 of 3 and 2 of 2
    assert dose.confidence == pytest.approx(0.9 - 0.012)


def test_ranks_are_those_of_the_first_paragraph_that_answers():
    report = Report(REPORT.document, (Asked("daily", "aspirin ?", (at("daily"),)),))
    (outcome,) = measure(FakeReader(), [report], Paragraphs()).outcomes
    assert outcome.rank == 2  # the plan is read with more confidence
    assert outcome.answer == "aspirin 81 mg"
    assert outcome.f1 == 0
    assert outcome.oracle_f1 == pytest.approx(2 * (1 / 4) / (1 + 1 / 4))


def test_all_measures_by_hand():
    measured = measure(FakeReader(), [REPORT], Paragraphs())
    found = measured.measures
    assert found["P@1"] == found["P@2"] == found["P@3"] == 1
    assert found["PR-QA EM"] == 0
    assert found["PR-QA F1"] == pytest.approx((0.8 + 2 / 3) / 2)  # `known` of `None known`
    assert found["Oracle-QA F1"] == found["PR-QA F1"]
    assert found["answered"] == 1
    assert found["refused"] == 1
    assert found["ECE"] == pytest.approx(((1 - 0.888) + (1 - 0.884) + 0.1) / 3)  # two right, one wrong
    assert measured.length == pytest.approx(len(TEXT) / 3)


def test_the_threshold_decides_what_is_refused():
    strict = measure(FakeReader(threshold=0.95), [REPORT], Paragraphs()).measures
    assert (strict["answered"], strict["refused"]) == (0, 1)
    lax = measure(FakeReader(threshold=0.05), [REPORT], Paragraphs()).measures
    assert (lax["answered"], lax["refused"]) == (1, 0)


def test_a_reader_sees_all_paragraphs_of_the_report():
    reader = FakeReader()
    measure(reader, [REPORT], Paragraphs("whole"))
    assert reader.asked == [(asked.text, [TEXT]) for asked in REPORT.questions]


def test_measures_are_there_only_where_there_are_such_questions():
    answerable = Report(REPORT.document, REPORT.questions[:2])
    assert "refused" not in measure(FakeReader(), [answerable], Paragraphs()).measures
    unanswerable = Report(REPORT.document, REPORT.questions[2:])
    assert set(measure(FakeReader(), [unanswerable], Paragraphs()).measures) == {"refused", "ECE"}


def test_an_empty_report_has_no_answer():
    empty = Report(Document("r2", " \n"), (Asked("q", "aspirin ?", ()),))
    (outcome,) = measure(FakeReader(), [empty], Paragraphs()).outcomes
    assert (outcome.span, outcome.answer, outcome.confidence, outcome.rank) == (None, "", 0, 0)


def test_answers_that_a_border_would_cut_are_kept_whole():
    for length in range(5, 60, 5):
        reader = FakeReader()
        measure(reader, [REPORT], Paragraphs("uniform", length))
        _, paragraphs = reader.asked[0]
        assert any("81 mg daily" in text for text in paragraphs)
        assert any("None known" in text for text in paragraphs)


def test_both_ways_over_lengths_with_several_readers():
    done = []
    readers = [FakeReader("one"), FakeReader("two", sure=0.7)]
    measured = over_lengths(readers, [REPORT], [20, 40, 1000], progress=lambda *pair: done.append(pair))
    assert len(measured) == 2 * 2 * 3
    assert done[-1] == (36, 36)
    assert [pair[0] for pair in done] == list(range(1, 37))
    groups = spreads(measured)
    assert [group.cut for group in groups] == ["heading"] * 3 + ["uniform"] * 3
    for group in groups:
        same = [one for one in measured if (one.cut, one.length) == (group.cut, group.length)]
        values = [one.measures["answered"] for one in same]
        assert group.readers == ("one", "two")
        found = (group.lowest["answered"], group.mean["answered"], group.highest["answered"])
        assert found == (min(values), sum(values) / len(values), max(values))


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


def test_the_command_tells_the_measures(run):
    found = json.loads(run("--data", "data.json", "--json"))
    assert (found["model"], found["cut"], found["answerable"], found["unanswerable"]) == ("reader", "passage", 2, 1)
    assert found["measures"] == measure(FakeReader("reader"), [REPORT], Paragraphs("passage")).measures
    printed = run("--data", "data.json")
    assert "3 questions, 1 without an answer, about 1 report, in %" in printed
    assert "73.3" in printed
    assert "…" not in printed
    assert max(map(len, printed.splitlines())) <= 80


@pytest.mark.parametrize("cut", ["passage", "heading", "uniform", "whole"])
def test_the_command_cuts_in_every_way(run, cut):
    found = json.loads(run("--data", "data.json", "--json", "--cut", cut))
    assert found["cut"] == cut
    if cut != "whole":
        shorter = json.loads(run("--data", "data.json", "--json", "--cut", cut, "--length", 20))
        assert shorter["length"] <= found["length"]


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
    kept = [json.loads(line) for line in (tmp_path / "q.jsonl").read_text().splitlines()]
    assert len(kept) == 8 * 3
    for line in kept:
        assert TEXT[line["begin"] : line["end"]] == line["answer"]
    shown = run("--data", "data.json", *options)
    assert "…" not in shown
    assert "mean of 2 models, lowest and highest" in shown
    assert shown.count("lowest") == 1 + 4


def test_samples_are_data(run):
    found = json.loads(run("--data", "samples", "--limit", 5, "--json"))
    assert found["answerable"] + found["unanswerable"] == 5
    part = json.loads(run("--data", "samples", "--part", "test", "--json"))
    assert 20 < part["answerable"] < 80


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--cut", "page"), "--cut knows no 'page'"),
        (("--part", "dev"), "--part knows no 'dev'"),
        (("--lengths", "20,x"), "is no list of numbers"),
        (("--lengths", "20", "--length", 30), "exclude each other"),
        (("--cut", "whole", "--length", 30), "has no length"),
        (("--plot", "a.pdf"), "is no picture"),
    ],
)
def test_bad_options_are_told(run, options, message):
    with pytest.raises(CaprError, match=message) as caught:
        run("--data", "data.json", *options)
    assert "Fix: " in str(caught.value)


def test_data_without_questions_are_told(run, tmp_path):
    write_squad([Report(Document("r", "text"), ())], tmp_path / "none.json")
    with pytest.raises(CaprError, match=r"no question to ask\. Fix: "):
        run("--data", "none.json")
    with pytest.raises(CaprError, match="Fix: "):
        run("--data", "missing.json")


def test_without_a_model_it_is_the_one_that_ships(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    write_squad([REPORT], tmp_path / "data.json")
    monkeypatch.setenv("CAPR_WEIGHTS", str(tmp_path))
    found = CliRunner().invoke(typer_app, ["evaluate", "reports", "--data", "data.json"])
    assert isinstance(found.exception, CaprError)
    assert f"there is no reader of answers in {tmp_path / 'reader'}. Fix: " in str(found.exception)

"""`capr evaluate` for retrieval."""

import json
import sys

import pytest
from typer.testing import CliRunner

from capr.cli import typer_app
from capr.documents import CaprError
from capr.evaluate.scorers import TermScorer
from capr.search import Library

MEASURES = ["R@1", "R@5", "R@10", "AP", "nDCG@10", "RR"]


def run(*arguments):
    result = CliRunner().invoke(typer_app, ["evaluate", *map(str, arguments)], env={"COLUMNS": "80"})
    if isinstance(result.exception, CaprError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def error_of(*arguments):
    with pytest.raises(CaprError) as caught:
        run(*arguments)
    assert "Fix: " in str(caught.value)
    return str(caught.value)


@pytest.fixture
def medquad(small_medquad):
    return "medquad", "--data", small_medquad


def test_json_has_the_usual_measures(medquad):
    (line,) = run(*medquad, "--model", "bm25", "--json").splitlines()
    report = json.loads(line)
    assert list(report) == ["protocol", "model", "queries", "measures", "matches"]
    assert (report["protocol"], report["model"], report["queries"]) == ("medquad", "bm25", "tuple")
    assert list(report["measures"]) == MEASURES
    assert all(0 <= value <= 1 for value in report["measures"].values())
    assert report["measures"]["R@10"] == 1


def test_each_model_has_a_line(medquad, tiny_encoder):
    printed = run(*medquad, "--model", "bm25", "--model", tiny_encoder, "--queries", "question", "--json")
    reports = [json.loads(line) for line in printed.splitlines()]
    assert [report["model"] for report in reports] == ["bm25", str(tiny_encoder)]
    assert {report["queries"] for report in reports} == {"question"}


def test_the_table_fits_a_terminal(medquad, tiny_encoder):
    printed = run(*medquad, "--model", "bm25", "--model", f"bm25+{tiny_encoder}")
    assert "medquad: 7 queries (tuple), 8 passages, in %" in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert all(name in printed for name in MEASURES)
    assert "…" not in printed


def test_the_table_of_one_model_has_confidence_intervals(medquad):
    printed = run(*medquad, "--model", "bm25")
    assert "95%" in printed
    assert printed.count("±") == len(MEASURES)
    assert max(map(len, printed.splitlines())) <= 80


def test_limit_reduces_the_queries(medquad, tmp_path):
    run(*medquad, "--model", "bm25", "--limit", 2, "--per-query", tmp_path / "out.jsonl")
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2
    assert "1 query (tuple)" in run(*medquad, "--model", "bm25", "--limit", 1)


def test_files_are_written(medquad, tmp_path):
    paths = [tmp_path / name for name in ("run", "qrels", "per.jsonl", "plot.png", "entities.txt")]
    options = ("--run", "--qrels", "--per-query", "--plot", "--entities")
    pairs = [part for pair in zip(options, paths, strict=True) for part in pair]
    report = json.loads(run(*medquad, "--model", "bm25", "--json", *pairs))
    ranking, qrels, per_query, picture, entities = paths
    assert {tuple(line.split()[i] for i in (1, 5)) for line in ranking.read_text().splitlines()} == {("Q0", "bm25")}
    assert len(qrels.read_text().splitlines()) == 8
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert entities.read_text() == "Asthma\nGout\nStroke\n"
    lines = [json.loads(line) for line in per_query.read_text().splitlines()]
    assert [line["query"] for line in lines] == [str(number) for number in range(1, 8)]
    assert (lines[2]["aspect"], lines[2]["source"], list(lines[2]["measures"])) == ("treatment", "GARD", MEASURES)
    for name in MEASURES:
        mean = sum(line["measures"][name] for line in lines) / 7
        assert mean == pytest.approx(report["measures"][name])
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in paths}


def test_against_compares_with_a_run(medquad, tmp_path):
    run(*medquad, "--model", "bm25", "--run", tmp_path / "bm25.run")
    same = run(*medquad, "--model", "bm25", "--against", tmp_path / "bm25.run")
    assert same.count("+0.00 against bm25.run, p = 1.0000") == len(MEASURES)
    other = run(*medquad, "--model", "tfidf", "--against", tmp_path / "bm25.run")
    assert other.count("against bm25.run, p = ") == len(MEASURES)


def test_a_run_of_other_data_is_refused(medquad, tmp_path):
    (tmp_path / "other.run").write_text("1 Q0 x 1 0.5 m\n")
    assert "other.run, line 1" in error_of(*medquad, "--model", "bm25", "--against", tmp_path / "other.run")


@pytest.mark.parametrize("protocol", ["beir", "samples", "medquad"])
def test_a_broken_run_is_refused_before_ranking(request, tmp_path, protocol, monkeypatch):
    data = {"beir": lambda: ["--data", request.getfixturevalue("beir_folder")], "samples": list}
    data["medquad"] = lambda: ["--data", request.getfixturevalue("small_medquad")]
    options = [protocol, *data[protocol](), "--model", "bm25", "--run", tmp_path / "written.run"]
    monkeypatch.setattr(Library, "search", _never)
    monkeypatch.setattr(TermScorer, "run", _never)
    (tmp_path / "other.run").write_text("cut off in the mid")
    assert "other.run, line 1: 'cut off in the mid'" in error_of(*options, "--against", tmp_path / "other.run")
    assert not (tmp_path / "written.run").exists()


def _never(*_, **__):
    raise AssertionError("ranked before the run was checked")


def test_a_missing_run_is_refused_before_reading_data(tmp_path):
    options = ("medquad", "--data", tmp_path / "no-data", "--model", "bm25")
    assert f"there is no {tmp_path / 'no.run'}" in error_of(*options, "--against", tmp_path / "no.run")


@pytest.mark.parametrize("option", ["--run", "--per-query", "--against"])
def test_options_for_one_model_are_refused_for_several(medquad, tmp_path, option):
    message = error_of(*medquad, "--model", "bm25", "--model", "tfidf", option, tmp_path / "file")
    assert "for one model" in message
    assert not (tmp_path / "file").exists()


def test_unknown_names_and_missing_data_are_reported(medquad, tmp_path):
    assert "there is no model no/such" in error_of(*medquad, "--model", "no/such")
    assert "does not accept 'keywords'" in error_of(*medquad, "--model", "bm25", "--queries", "keywords")
    assert str(tmp_path) in error_of("medquad", "--data", tmp_path, "--model", "bm25")
    assert str(tmp_path) in error_of("wikisection", "--data", tmp_path, "--model", "bm25")
    assert str(tmp_path) in error_of("beir", "--data", tmp_path, "--model", "bm25")
    assert "is not a picture" in error_of(*medquad, "--model", "bm25", "--plot", tmp_path / "a.gif")
    assert "--part" in error_of("notes", "--data", tmp_path, "--model", "bm25", "--part", "half")
    assert "does not accept 'keywords'" in error_of("samples", "--model", "bm25", "--queries", "keywords")


PROTOCOLS = [
    ("medquad", "--data", "data"),
    ("wikisection", "--data", "data"),
    ("notes", "--data", "data"),
    ("beir", "--data", "data"),
    ("samples",),
]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol[0])
def test_a_missing_package_is_reported_before_any_work(monkeypatch, tmp_path, protocol):
    monkeypatch.chdir(tmp_path)  # where there are no data
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "ir_measures", None)
        fact = "evaluation needs ir_measures, which is not installed. Fix: pip install 'capr[evaluate]'."
        assert error_of(*protocol, "--model", "bm25") == fact
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    fact = "a plot needs matplotlib, which is not installed. Fix: pip install 'capr[evaluate]'."
    assert error_of(*protocol, "--model", "bm25", "--plot", "plot.png") == fact


def test_articles_are_measured(tmp_path):
    sections = [{"begin": 0, "length": 18, "sectionHeading": "Signs", "sectionLabel": "disease.symptom"}]
    article = {"id": "Q1", "title": "Gout", "text": "Gout hurts a lot.\n", "annotations": sections}
    (tmp_path / "a.json").write_text(json.dumps([article]))
    report = json.loads(run("wikisection", "--data", tmp_path / "a.json", "--model", "bm25", "--json"))
    assert (report["protocol"], set(report["measures"].values())) == ("wikisection", {1.0})


def test_notes_are_measured(tmp_path):
    for number, disease in enumerate(("gout", "asthma", "pneumonia")):
        text = f"ASSESSMENT:\nThe patient has {disease} and takes something against it every day.\n"
        (tmp_path / f"{number}.txt").write_text(text)
    report = json.loads(run("notes", "--data", tmp_path, "--part", "all", "--shown", "--model", "bm25", "--json"))
    assert report["protocol"] == "notes, heading shown"
    assert report["measures"]["R@1"] == 1


@pytest.fixture
def beir_folder(tmp_path):
    (tmp_path / "corpus.jsonl").write_text(
        '{"_id": "a", "title": "", "text": "Gout hurts."}\n{"_id": "b", "title": "", "text": "Stroke is sudden."}\n'
    )
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "Is a stroke sudden?"}\n')
    (tmp_path / "qrels.tsv").write_text("q\tb\t1\n")
    return tmp_path


def test_ids_that_only_the_qrels_have_are_noted_once(beir_folder):
    (beir_folder / "qrels.tsv").write_text("q\tb\t1\nq\tc\t1\n")
    options = ["evaluate", "beir", "--data", str(beir_folder), "--model", "bm25", "--model", "bm25", "--json"]
    result = CliRunner().invoke(typer_app, options)
    assert result.stderr.count("Notice: corpus.jsonl lacks 1 document of ") == 1
    assert [json.loads(line)["measures"]["R@10"] for line in result.stdout.splitlines()] == [0.5, 0.5]


def test_a_beir_folder_is_measured(beir_folder, tmp_path):
    printed = run("beir", "--data", tmp_path, "--model", "bm25", "--run", tmp_path / "run", "--json")
    assert json.loads(printed)["measures"]["R@1"] == 1
    assert (tmp_path / "run").read_text().startswith("q Q0 b 1 ")


def test_the_samples_are_measured(tmp_path):
    printed = run("samples", "--model", "bm25", "--queries", "tuple", "--plot", tmp_path / "a.svg")
    assert "samples: 100 queries (tuple)" in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert (tmp_path / "a.svg").exists()


def test_latency_prints_each_model_and_size(tiny_encoder, tiny_ranker, tiny_poly):
    models = [part for folder in (tiny_encoder, tiny_ranker, tiny_poly) for part in ("--model", folder)]
    printed = run("latency", *models, "--sizes", "2,4", "--repeats", 1, "--json")
    timings = [json.loads(line) for line in printed.splitlines()]
    assert [(timing["model"], timing["kind"], timing["passages"]) for timing in timings] == [
        (name, name, size) for name in ("encoder", "ranker", "poly") for size in (2, 4)
    ]
    assert all(timing["seconds"] > 0 and timing["device"] == "cpu" for timing in timings)


def test_latency_as_a_table(tiny_encoder):
    printed = run("latency", "--model", tiny_encoder, "--sizes", "2", "--repeats", 1)
    assert [word in printed for word in ("model", "passages", "ms", "encoder", "cpu")] == [True] * 5


def test_latency_reports_bad_options(tiny_encoder, tmp_path):
    assert "is not a list of numbers" in error_of("latency", "--model", tiny_encoder, "--sizes", "many")
    assert "does not accept 'tpu'" in error_of("latency", "--model", tiny_encoder, "--device", "tpu")
    assert "is not a model" in error_of("latency", "--model", tmp_path)


def test_notes_can_be_columns_of_a_table(tmp_path):
    rows = [
        f'{number},"We treat the {disease} of number {number} with the usual care at home.",None.'
        for number, disease in enumerate(("asthma", "gout", "psoriasis", "epilepsy"))
    ]
    table = tmp_path / "notes.csv"
    table.write_text("uid,impression,findings\n" + "\n".join(rows) + "\n")
    options = ("notes", "--data", table, "--part", "all", "--model", "bm25", "--json")
    assert "have 0 passages with a query" in error_of(*options)
    errors = CliRunner().invoke(typer_app, ["evaluate", *map(str, options)]).stderr
    assert "no field for the text; the fields are: uid, impression, findings" in errors
    report = json.loads(run(*options, "--column", "id=uid", "--column", "text=impression+findings"))
    assert report["measures"]["R@1"] == 1


def test_the_help_names_the_models_that_a_protocol_takes():
    candidates, library = (" ".join(run(name, "--help").split()) for name in ("medquad", "beir"))
    assert "bm25, tfidf, encoder" in candidates
    assert "tfidf" not in library
    assert "bm25+encoder; a>ranker" in library

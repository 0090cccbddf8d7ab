"""`capr evaluate` for retrieval, as a user runs it."""

import json

import pytest
from typer.testing import CliRunner

from capr.cli import typer_app
from capr.documents import CaprError

MEASURES = ["R@1", "R@5", "R@10", "AP", "nDCG@10", "RR"]


def run(*arguments):
    result = CliRunner().invoke(typer_app, ["evaluate", *map(str, arguments)], env={"COLUMNS": "80"})
    if isinstance(result.exception, CaprError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments):
    with pytest.raises(CaprError) as caught:
        run(*arguments)
    assert "Fix: " in str(caught.value)
    return str(caught.value)


@pytest.fixture
def medquad(small_medquad):
    return "medquad", "--data", small_medquad


def test_json_has_the_measures_by_their_usual_names(medquad):
    (line,) = run(*medquad, "--model", "bm25", "--json").splitlines()
    found = json.loads(line)
    assert list(found) == ["protocol", "model", "queries", "measures", "matches"]
    assert (found["protocol"], found["model"], found["queries"]) == ("medquad", "bm25", "tuple")
    assert list(found["measures"]) == MEASURES
    assert all(0 <= value <= 1 for value in found["measures"].values())
    assert found["measures"]["R@10"] == 1


def test_several_models_have_a_line_each(medquad, tiny_encoder):
    printed = run(*medquad, "--model", "bm25", "--model", tiny_encoder, "--queries", "question", "--json")
    found = [json.loads(line) for line in printed.splitlines()]
    assert [one["model"] for one in found] == ["bm25", str(tiny_encoder)]
    assert {one["queries"] for one in found} == {"question"}


def test_the_table_fits_a_terminal(medquad, tiny_encoder):
    printed = run(*medquad, "--model", "bm25", "--model", f"bm25+{tiny_encoder}")
    assert "medquad: 7 queries (tuple), 8 passages, in %" in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert all(name in printed for name in MEASURES)
    assert "…" not in printed


def test_one_model_is_shown_with_its_confidence(medquad):
    printed = run(*medquad, "--model", "bm25")
    assert "95 %" in printed
    assert printed.count("±") == len(MEASURES)
    assert max(map(len, printed.splitlines())) <= 80


def test_a_limit_asks_fewer_queries(medquad, tmp_path):
    run(*medquad, "--model", "bm25", "--limit", 2, "--per-query", tmp_path / "out.jsonl")
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2
    assert "1 query (tuple)" in run(*medquad, "--model", "bm25", "--limit", 1)


def test_files_are_written(medquad, tmp_path):
    paths = [tmp_path / name for name in ("run", "qrels", "per.jsonl", "plot.png", "entities.txt")]
    options = ("--run", "--qrels", "--per-query", "--plot", "--entities")
    pairs = [part for pair in zip(options, paths, strict=True) for part in pair]
    found = json.loads(run(*medquad, "--model", "bm25", "--json", *pairs))
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
        assert mean == pytest.approx(found["measures"][name])
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in paths}


def test_a_run_can_be_compared_with(medquad, tmp_path):
    run(*medquad, "--model", "bm25", "--run", tmp_path / "bm25.run")
    same = run(*medquad, "--model", "bm25", "--against", tmp_path / "bm25.run")
    assert same.count("+0.00 against bm25.run, p = 1.0000") == len(MEASURES)
    other = run(*medquad, "--model", "tfidf", "--against", tmp_path / "bm25.run")
    assert other.count("against bm25.run, p = ") == len(MEASURES)


def test_a_run_of_other_data_is_refused(medquad, tmp_path):
    (tmp_path / "other.run").write_text("1 Q0 x 1 0.5 m\n")
    assert "other.run, line 1" in refused(*medquad, "--model", "bm25", "--against", tmp_path / "other.run")


@pytest.mark.parametrize("option", ["--run", "--per-query", "--against"])
def test_options_for_one_model_are_refused_for_several(medquad, tmp_path, option):
    message = refused(*medquad, "--model", "bm25", "--model", "tfidf", option, tmp_path / "file")
    assert "for one model" in message
    assert not (tmp_path / "file").exists()


def test_what_is_not_there_is_told(medquad, tmp_path):
    assert "there is no model no/such" in refused(*medquad, "--model", "no/such")
    assert "knows no 'keywords'" in refused(*medquad, "--model", "bm25", "--queries", "keywords")
    assert str(tmp_path) in refused("medquad", "--data", tmp_path, "--model", "bm25")
    assert str(tmp_path) in refused("wikisection", "--data", tmp_path, "--model", "bm25")
    assert str(tmp_path) in refused("beir", "--data", tmp_path, "--model", "bm25")
    assert "is no picture" in refused(*medquad, "--model", "bm25", "--plot", tmp_path / "a.gif")
    assert "--part" in refused("notes", "--data", tmp_path, "--model", "bm25", "--part", "half")
    assert "knows no 'keywords'" in refused("samples", "--model", "bm25", "--queries", "keywords")


def test_articles_are_measured(tmp_path):
    sections = [{"begin": 0, "length": 18, "sectionHeading": "Signs", "sectionLabel": "disease.symptom"}]
    article = {"id": "Q1", "title": "Gout", "text": "Gout hurts a lot.\n", "annotations": sections}
    (tmp_path / "a.json").write_text(json.dumps([article]))
    found = json.loads(run("wikisection", "--data", tmp_path / "a.json", "--model", "bm25", "--json"))
    assert (found["protocol"], set(found["measures"].values())) == ("wikisection", {1.0})


def test_notes_are_measured(tmp_path):
    for number, disease in enumerate(("gout", "asthma", "pneumonia")):
        text = f"ASSESSMENT:\nThe patient has {disease} and takes something against it every day.\n"
        (tmp_path / f"{number}.txt").write_text(text)
    found = json.loads(run("notes", "--data", tmp_path, "--part", "all", "--shown", "--model", "bm25", "--json"))
    assert found["protocol"] == "notes, heading shown"
    assert found["measures"]["R@1"] == 1


def test_a_beir_folder_is_measured(tmp_path):
    (tmp_path / "corpus.jsonl").write_text(
        '{"_id": "a", "title": "", "text": "Gout hurts."}\n{"_id": "b", "title": "", "text": "Stroke is sudden."}\n'
    )
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "Is a stroke sudden?"}\n')
    (tmp_path / "qrels.tsv").write_text("q\tb\t1\n")
    printed = run("beir", "--data", tmp_path, "--model", "bm25", "--run", tmp_path / "run", "--json")
    assert json.loads(printed)["measures"]["R@1"] == 1
    assert (tmp_path / "run").read_text().startswith("q Q0 b 1 ")


def test_the_samples_are_measured(tmp_path):
    printed = run("samples", "--model", "bm25", "--queries", "tuple", "--plot", tmp_path / "a.svg")
    assert "samples: 100 queries (tuple)" in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert (tmp_path / "a.svg").exists()


def test_latency_is_told_for_each_model_and_size(tiny_encoder, tiny_ranker, tiny_poly):
    models = [part for folder in (tiny_encoder, tiny_ranker, tiny_poly) for part in ("--model", folder)]
    printed = run("latency", *models, "--sizes", "2,4", "--repeats", 1, "--json")
    found = [json.loads(line) for line in printed.splitlines()]
    assert [(one["model"], one["kind"], one["passages"]) for one in found] == [
        (name, name, size) for name in ("encoder", "ranker", "poly") for size in (2, 4)
    ]
    assert all(one["seconds"] > 0 and one["device"] == "cpu" for one in found)


def test_latency_as_a_table(tiny_encoder):
    printed = run("latency", "--model", tiny_encoder, "--sizes", "2", "--repeats", 1)
    assert [word in printed for word in ("model", "passages", "ms", "encoder", "cpu")] == [True] * 5


def test_latency_tells_what_it_cannot_do(tiny_encoder, tmp_path):
    assert "is no list of numbers" in refused("latency", "--model", tiny_encoder, "--sizes", "many")
    assert "knows no 'tpu'" in refused("latency", "--model", tiny_encoder, "--device", "tpu")
    assert "is no model" in refused("latency", "--model", tmp_path)


def test_notes_in_a_table_are_read_by_the_columns_that_are_named(tmp_path):
    rows = [
        f'{number},"We treat the {disease} of number {number} with the usual care at home.",None.'
        for number, disease in enumerate(("asthma", "gout", "psoriasis", "epilepsy"))
    ]
    table = tmp_path / "notes.csv"
    table.write_text("uid,impression,findings\n" + "\n".join(rows) + "\n")
    options = ("notes", "--data", table, "--part", "all", "--model", "bm25", "--json")
    assert "have 0 passages to ask for" in refused(*options)
    told = CliRunner().invoke(typer_app, ["evaluate", *map(str, options)]).stderr
    assert "no field for the text; the fields are: uid, impression, findings" in told
    found = json.loads(run(*options, "--column", "id=uid", "--column", "text=impression+findings"))
    assert found["measures"]["R@1"] == 1

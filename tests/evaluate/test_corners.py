"""Edge cases of evaluation: unusual files, names and options."""

import json

import pytest
from typer.testing import CliRunner

from capr.annotate.mentions import annotator
from capr.cli import typer_app
from capr.documents import CaprError, read
from capr.evaluate import notes, plots, wikisection
from capr.evaluate.beir import beir
from capr.evaluate.measures import measure, read_run, write_run
from capr.evaluate.scorers import term_query
from capr.evaluate.task import Task, TaskQuery
from capr.evaluate.through_library import Setting
from capr.runtime.shipped import shipped
from capr.segment.aspects import aspect_of


def silent(done, total):
    pass


@pytest.mark.shipped
def test_the_built_in_tagger_exists():
    assert shipped("tagger").is_dir()


def test_sections_without_an_aspect_have_no_query(tmp_path):
    text = "Gout is a form of arthritis.\nFamous people had it, kings too.\n"
    base = {"class": "EntityAspectAnnotation", "entity": "Gout", "entityId": "Q1"}
    annotations = [base | {"begin": 0, "length": 29, "aspect": "information"}, base | {"begin": 29, "length": 33}]
    document = {"class": "Document", "id": "Q1", "title": "Gout", "text": text, "annotations": annotations}
    path = tmp_path / "WikiSectionQA_test.json"
    path.write_text(json.dumps({"name": "WikiSection", "documents": [document], "queries": []}))
    (query,) = wikisection.load(path).queries
    assert query.relevant == {"Q1#0"}


def test_json_with_against_is_json(small_medquad, tmp_path):
    def run(*more):
        command = ["evaluate", "medquad", "--data", str(small_medquad), "--model", "bm25", *map(str, more)]
        return CliRunner().invoke(typer_app, command).stdout

    run("--run", tmp_path / "run")
    for line in run("--json", "--against", tmp_path / "run").splitlines():
        json.loads(line)


def beir_folder(tmp_path, question, qrels):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "gout hurts"}\n{"_id": "b", "text": "a stroke"}\n')
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": question}) + "\n")
    (tmp_path / "qrels.tsv").write_text(qrels)
    return tmp_path


@pytest.mark.parametrize("question", ["-gout hurts", "hurts\t-gout", "hurts\n-gout"])
def test_a_minus_sign_at_the_beginning_is_not_an_operator(tmp_path, question):
    _, run = beir(beir_folder(tmp_path, question, "q\ta\t1\n"), "bm25", silent)
    assert run["q"].keys() == {"a"}


def test_a_folder_without_qrels_of_its_queries_is_reported(tmp_path):
    with pytest.raises(CaprError, match="Fix: "):
        beir(beir_folder(tmp_path, "gout", "q\ta\t0\n"), "bm25", silent)


def test_a_first_judgement_with_a_blank_at_its_end_is_not_a_header(tmp_path):
    task, _ = beir(beir_folder(tmp_path, "gout", "q\ta\t1 \n"), "bm25", silent)
    assert [query.id for query in task.queries] == ["q"]


@pytest.mark.parametrize("relevance", ["--1", "²"])
def test_a_relevance_that_is_not_a_number_is_reported(tmp_path, relevance):
    with pytest.raises(CaprError, match="line 2 "):
        beir(beir_folder(tmp_path, "gout", f"q\ta\t1\nq\tb\t{relevance}\n"), "bm25", silent)


def test_quotation_marks_in_qrels_are_part_of_the_id(tmp_path):
    qrels = 'q\t"a\t1\nq\ta\t1\n'
    task, _ = beir(beir_folder(tmp_path, "gout", qrels), "bm25", silent)
    assert task.queries[0].relevant == {'"a', "a"}


@pytest.mark.parametrize("question", ["", '"" :'])
def test_a_question_without_words_finds_nothing(tmp_path, question):
    _, run = beir(beir_folder(tmp_path, question, "q\ta\t1\n"), "bm25", silent)
    assert run == {"q": {}}


@pytest.mark.parametrize("content", [b"1 Q0 a x 0.5 m\n", b"1 Q0 a 1 nan m\n", b"1 Q0 a 1 high m\n", b"\xff\xfe\x00"])
def test_an_invalid_run_is_reported(toy, tmp_path, content):
    (tmp_path / "run").write_bytes(content)
    with pytest.raises(CaprError, match="line 1"):
        read_run(tmp_path / "run", toy)


def test_ids_that_differ_in_a_blank_are_kept_apart(tmp_path):
    task = Task("t", {"a b": "", "a_b": ""}, [TaskQuery("1", "e", "a", "", frozenset(["a_b"]))])
    run = {"1": {"a b": 2.0, "a_b": 1.0}}
    write_run(run, task, tmp_path / "run", "m")
    assert measure(task, read_run(tmp_path / "run", task), "m", "tuple") == measure(task, run, "m", "tuple")


def test_a_plot_has_more_models_than_colours(toy, tmp_path):
    run = {"1": {"a": 1.0}, "2": {"e": 1.0}}
    plots.plot(tmp_path / "a.svg", toy, [(measure(toy, run, f"model{i}", "tuple"), run) for i in range(6)])
    assert "<!-- model5 -->" in (tmp_path / "a.svg").read_text()


def test_a_query_without_an_entity_searches_its_question():
    assert term_query(TaskQuery("1", "", "", "What?", frozenset()), "tuple").strip() == "What?"


@pytest.mark.data
def test_the_group_of_a_query_is_its_aspect(data):
    for query in notes.load(read(data / "mtsamples"), finder=annotator(with_tagger=False)).queries:
        assert aspect_of(query.aspect) == query.groups["aspect"]


@pytest.mark.parametrize("name", ["bm25>", "", "bm25+", "bm25+bm25", "a>b>c", ">"])
def test_an_incomplete_name_is_refused(name):
    with pytest.raises(CaprError, match="Fix: "):
        Setting.of(name)


def test_a_size_that_is_not_a_number_is_refused(tiny_encoder):
    result = CliRunner().invoke(typer_app, ["evaluate", "latency", "--model", str(tiny_encoder), "--sizes", "2,x"])
    assert isinstance(result.exception, CaprError)


def test_the_label_abstract_becomes_information(tmp_path):
    section = {"begin": 0, "length": 28, "sectionHeading": "Abstract", "sectionLabel": "disease.abstract"}
    article = {"id": "Q1", "title": "Gout", "text": "Gout is a form of arthritis.", "annotations": [section]}
    (tmp_path / "w.json").write_text(json.dumps([article]))
    (query,) = wikisection.load(tmp_path / "w.json").queries
    assert query.groups == {"aspect": "information"}


def test_an_unknown_picture_format_is_refused_at_once(small_medquad, tmp_path, monkeypatch):
    from capr.evaluate import scorers

    monkeypatch.setattr(scorers, "load", lambda name: pytest.fail("a model was loaded first"))
    command = [
        "evaluate",
        "medquad",
        "--data",
        str(small_medquad),
        "--model",
        "bm25",
        "--plot",
        str(tmp_path / "a.gif"),
    ]
    assert isinstance(CliRunner().invoke(typer_app, command).exception, CaprError)

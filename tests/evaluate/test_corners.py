"""Corners of evaluation: odd files, odd names, odd options."""

import json

import pytest
from typer.testing import CliRunner

from capr.annotate.aspects import aspect_of
from capr.annotate.mentions import annotator
from capr.cli import typer_app
from capr.documents import CaprError, read
from capr.evaluate import notes, plots, wikisection
from capr.evaluate.measures import measure, read_run, write_run
from capr.evaluate.scorers import term_query
from capr.evaluate.task import Asked, Task
from capr.evaluate.through_library import Setting, beir
from capr.search.models import shipped


def silent(done, total):
    pass


@pytest.mark.shipped
def test_what_ships_is_found():
    assert shipped("tagger").is_dir()


def test_sections_without_an_aspect_are_not_asked_for(tmp_path):
    text = "Gout is a form of arthritis.\nFamous people had it, kings too.\n"
    base = {"class": "EntityAspectAnnotation", "entity": "Gout", "entityId": "Q1"}
    annotations = [base | {"begin": 0, "length": 29, "aspect": "information"}, base | {"begin": 29, "length": 33}]
    document = {"class": "Document", "id": "Q1", "title": "Gout", "text": text, "annotations": annotations}
    path = tmp_path / "WikiSectionQA_test.json"
    path.write_text(json.dumps({"name": "WikiSection", "documents": [document], "queries": []}))
    (asked,) = wikisection.load(path).asked
    assert asked.relevant == {"Q1#0"}


def test_json_with_against_is_json(small_medquad, tmp_path):
    def run(*more):
        command = ["evaluate", "medquad", "--data", str(small_medquad), "--model", "bm25", *map(str, more)]
        return CliRunner().invoke(typer_app, command).stdout

    run("--run", tmp_path / "run")
    for line in run("--json", "--against", tmp_path / "run").splitlines():
        json.loads(line)


def folder(tmp_path, question, qrels):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "gout hurts"}\n{"_id": "b", "text": "a stroke"}\n')
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": question}) + "\n")
    (tmp_path / "qrels.tsv").write_text(qrels)
    return tmp_path


@pytest.mark.parametrize("question", ["-gout hurts", "hurts\t-gout", "hurts\n-gout"])
def test_a_minus_sign_at_the_beginning_is_no_operator(tmp_path, question):
    _, run = beir(folder(tmp_path, question, "q\ta\t1\n"), "bm25", silent)
    assert run["q"].keys() == {"a"}


def test_a_folder_without_judged_queries_is_told(tmp_path):
    with pytest.raises(CaprError, match="Fix: "):
        beir(folder(tmp_path, "gout", "q\ta\t0\n"), "bm25", silent)


def test_a_first_judgement_with_a_blank_at_its_end_is_no_header(tmp_path):
    task, _ = beir(folder(tmp_path, "gout", "q\ta\t1 \n"), "bm25", silent)
    assert [asked.id for asked in task.asked] == ["q"]


@pytest.mark.parametrize("relevance", ["--1", "²"])
def test_an_odd_relevance_is_told(tmp_path, relevance):
    with pytest.raises(CaprError, match="line 2 "):
        beir(folder(tmp_path, "gout", f"q\ta\t1\nq\tb\t{relevance}\n"), "bm25", silent)


def test_quotation_marks_in_judgements_are_letters(tmp_path):
    qrels = 'q\t"a\t1\nq\ta\t1\n'
    task, _ = beir(folder(tmp_path, "gout", qrels), "bm25", silent)
    assert task.asked[0].relevant == {'"a', "a"}


@pytest.mark.parametrize("question", ["", '"" :'])
def test_a_question_without_words_finds_nothing(tmp_path, question):
    _, run = beir(folder(tmp_path, question, "q\ta\t1\n"), "bm25", silent)
    assert run == {"q": {}}


@pytest.mark.parametrize("content", [b"1 Q0 a x 0.5 m\n", b"1 Q0 a 1 nan m\n", b"1 Q0 a 1 high m\n", b"\xff\xfe\x00"])
def test_a_run_that_cannot_be_understood_is_told(toy, tmp_path, content):
    (tmp_path / "run").write_bytes(content)
    with pytest.raises(CaprError, match="line 1"):
        read_run(tmp_path / "run", toy)


def test_ids_that_differ_in_a_blank_are_kept_apart(tmp_path):
    task = Task("t", {"a b": "", "a_b": ""}, [Asked("1", "e", "a", "", frozenset(["a_b"]))])
    run = {"1": {"a b": 2.0, "a_b": 1.0}}
    write_run(run, task, tmp_path / "run", "m")
    assert measure(task, read_run(tmp_path / "run", task), "m", "tuple") == measure(task, run, "m", "tuple")


def test_a_sixth_model_is_drawn_too(toy, tmp_path):
    run = {"1": {"a": 1.0}, "2": {"e": 1.0}}
    plots.plot(tmp_path / "a.svg", toy, [(measure(toy, run, f"model{i}", "tuple"), run) for i in range(6)])
    assert "<!-- model5 -->" in (tmp_path / "a.svg").read_text()


def test_a_task_without_entities_asks_its_question():
    assert term_query(Asked("1", "", "", "What?", frozenset()), "tuple").strip() == "What?"


@pytest.mark.data
def test_a_query_is_reported_under_the_aspect_that_it_asks_for(data):
    for asked in notes.load(read(data / "mtsamples"), finder=annotator(with_tagger=False)).asked:
        assert aspect_of(asked.aspect) == asked.groups["aspect"]


@pytest.mark.parametrize("name", ["bm25>", "", "bm25+", "bm25+bm25", "a>b>c", ">"])
def test_half_a_name_is_refused(name):
    with pytest.raises(CaprError, match="Fix: "):
        Setting.of(name)


def test_a_number_that_is_none_is_not_passed_over(tiny_encoder):
    result = CliRunner().invoke(typer_app, ["evaluate", "latency", "--model", str(tiny_encoder), "--sizes", "2,x"])
    assert isinstance(result.exception, CaprError)


def test_a_label_that_says_abstract_is_information(tmp_path):
    section = {"begin": 0, "length": 28, "sectionHeading": "Abstract", "sectionLabel": "disease.abstract"}
    article = {"id": "Q1", "title": "Gout", "text": "Gout is a form of arthritis.", "annotations": [section]}
    (tmp_path / "w.json").write_text(json.dumps([article]))
    (asked,) = wikisection.load(tmp_path / "w.json").asked
    assert asked.groups == {"aspect": "information"}


def test_a_picture_of_a_wrong_kind_is_refused_before_the_work(small_medquad, tmp_path, monkeypatch):
    from capr.evaluate import scorers

    monkeypatch.setattr(scorers, "load", lambda name: pytest.fail("the work was done first"))
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

"""BEIR's folders and the built-in questions in a library."""

import json

import pytest

from capr import samples
from capr.documents import CaprError
from capr.evaluate.beir import beir
from capr.evaluate.measures import measure
from capr.evaluate.through_library import Setting, shipped_samples

CORPUS = {
    "d1": ("Gout", "Colchicine and rest help against gout."),
    "d2": ("Stroke", "Thrombolysis within hours helps after a stroke."),
    "d3": ("Asthma", "Inhaled steroids keep asthma quiet, without fever."),
    "d4": ("Only a title about psoriasis", ""),
}
QUERIES = {
    "q1": "What helps against gout?",
    "q2": 'stroke "steroids inhaled" -thrombolysis',
    "q3": "nobody judged this",
    "q4": "asthma +gout title:nothing",
    "q5": "psoriasis",
}


def silent(done, total):
    pass


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "corpus.jsonl").write_text(
        "".join(json.dumps({"_id": id, "title": title, "text": text}) + "\n" for id, (title, text) in CORPUS.items())
    )
    (tmp_path / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": id, "text": text}) + "\n" for id, text in QUERIES.items())
    )
    return tmp_path


def write_qrels(folder, *lines, name="qrels.tsv"):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("".join(line.replace(" ", "\t") + "\n" for line in lines))


LINES = ("q1 d1 1", "q2 d2 2", "q3 d1 0", "q4 d3 1", "q5 d4 1")
RELEVANT = {"q1": {"d1"}, "q2": {"d2"}, "q4": {"d3"}, "q5": {"d4"}}


def test_every_query_searches_the_whole_corpus(folder):
    write_qrels(folder, *LINES)
    task, run = beir(folder, "bm25", silent)
    assert (task.name, list(task.passages)) == ("beir", list(CORPUS))
    assert {query.id: query.relevant for query in task.queries} == RELEVANT
    assert measure(task, run, "bm25", "question").measures["RR"] > 0.7


def test_quotes_signs_and_colons_in_a_question_are_not_operators(folder):
    write_qrels(folder, *LINES)
    _, run = beir(folder, "bm25", silent)
    assert {"d2", "d3"} <= run["q2"].keys()
    assert {"d1", "d3"} <= run["q4"].keys()


@pytest.mark.parametrize(
    "lines",
    [
        ("query-id corpus-id score", *LINES),
        tuple(f"{query} 0 {document} {score}" for query, document, score in map(str.split, LINES)),
        ("query iteration document relevance", "q1 Q0 d1 1", "q2 0 d2 1", "q3 0 d1 -1", "q4 0 d3 1", "q5 0 d4 1"),
    ],
)
def test_qrels_with_and_without_header_in_three_or_four_columns(folder, lines):
    write_qrels(folder, *lines, name="qrels/test.tsv")
    task, _ = beir(folder, "bm25", silent)
    assert {query.id: query.relevant for query in task.queries} == RELEVANT


def test_limit_reduces_the_queries(folder):
    write_qrels(folder, *LINES)
    calls = []
    task, run = beir(folder, "bm25", lambda done, total: calls.append((done, total)), limit=2)
    assert [query.id for query in task.queries] == [*run] == ["q1", "q2"]
    assert calls[-1] == (6, 6)


@pytest.mark.parametrize("line", ["q2 d2", "q2 d2 good", "q2 d2 1 2 3", "q2,d2,1"])
def test_an_invalid_line_of_qrels_is_reported(folder, line):
    write_qrels(folder, "q1 d1 1", line)
    with pytest.raises(CaprError) as caught:
        beir(folder, "bm25", silent)
    assert f"{folder / 'qrels.tsv'}, line 2 " in str(caught.value)
    assert "Fix: " in str(caught.value)


@pytest.mark.parametrize(
    "line", ["q1  d1  1", "q1 d1 one", "q1 0 d1 one", "q9 d1 one", "query-id", "query-id,corpus-id,score", "q1,d1,1"]
)
def test_a_first_line_that_is_neither_a_judgement_nor_a_header_is_reported(folder, line):
    write_qrels(folder, line, *LINES[1:])
    if "  " in line:
        (folder / "qrels.tsv").write_text("q1 d1 1\nq2\td2\t1\n")
    with pytest.raises(CaprError, match=r"line 1 is not a judgement, and not a header, .* Fix: write query, document"):
        beir(folder, "bm25", silent)


def test_a_query_whose_id_is_the_name_of_a_column_has_judgements(folder):
    with (folder / "queries.jsonl").open("a") as file:
        file.write(json.dumps({"_id": "query", "text": "asthma"}) + "\n")
    write_qrels(folder, "query d3 one", *LINES)
    with pytest.raises(CaprError, match="line 1 is not a judgement"):
        beir(folder, "bm25", silent)


def test_a_byte_order_mark_is_not_part_of_an_id(folder):
    write_qrels(folder, *LINES)
    for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv"):
        (folder / name).write_bytes(b"\xef\xbb\xbf" + (folder / name).read_bytes())
    task, _ = beir(folder, "bm25", silent)
    assert {query.id: query.relevant for query in task.queries} == RELEVANT
    assert not task.notices


@pytest.mark.parametrize(("name", "id", "first"), [("corpus.jsonl", "d2", 2), ("queries.jsonl", "q1", 1)])
def test_an_id_that_occurs_twice_is_reported(folder, name, id, first):
    write_qrels(folder, *LINES)
    path = folder / name
    count = len(path.read_text().splitlines())
    with path.open("a") as file:
        file.write(json.dumps({"_id": id, "text": "again"}) + "\n")
    with pytest.raises(CaprError) as caught:
        beir(folder, "bm25", silent)
    fact = f"{path}, line {count + 1}: _id {id!r} is also on line {first}. Fix: give every line an _id of its own."
    assert str(caught.value) == fact


def test_ids_that_only_the_qrels_have_are_named(folder):
    write_qrels(folder, *LINES, "q1 d8 1", "q8 d1 1", "q9 d9 1")
    task, _ = beir(folder, "bm25", silent)
    assert task.notices == [
        f"queries.jsonl lacks 2 queries of {folder / 'qrels.tsv'} (the first is 'q8'), which are ignored",
        f"corpus.jsonl lacks 2 documents of {folder / 'qrels.tsv'} (the first is 'd8'), which are counted as not found",
    ]
    assert {query.id: query.relevant for query in task.queries} == {**RELEVANT, "q1": {"d1", "d8"}}
    write_qrels(folder, *LINES, "q5 d9 1")
    (notice,) = beir(folder, "bm25", silent)[0].notices
    assert notice.startswith("corpus.jsonl lacks 1 document of ")
    assert notice.endswith(" ('d9'), which is counted as not found")
    write_qrels(folder, *LINES)
    assert not beir(folder, "bm25", silent)[0].notices


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("q1 d9 1", ": corpus.jsonl lacks 1 document of "),
        ("q9 d1 1", ": queries.jsonl lacks 1 query of "),
        ("q1 d1 0", ". Fix: "),
    ],
)
def test_qrels_without_a_known_query_and_document_are_reported(folder, line, cause):
    write_qrels(folder, line)
    with pytest.raises(CaprError, match="Fix: write qrels with the _id of ") as caught:
        beir(folder, "bm25", silent)
    assert f"{folder / 'qrels.tsv'} has no relevant document for any query{cause}" in str(caught.value)


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl"])
@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("{half", "the line is not JSON (Expecting property name"),
        ("[]", "the line is not an object"),
        ("null", "the line is not an object"),
        ('{"_id": "x"}', "the object has no text"),
        ("{}", "the object has no _id and no text"),
        ('{"_id": 7, "text": "seven"}', "_id must be text in quotation marks"),
        ('"text"', "the line is not an object"),
    ],
)
def test_an_invalid_record_is_reported(folder, name, line, fact):
    write_qrels(folder, *LINES)
    path = folder / name
    count = len(path.read_text().splitlines())
    path.write_text(f"{path.read_text()}\n{line}\n")
    with pytest.raises(CaprError) as caught:
        beir(folder, "bm25", silent)
    assert f"{path}, line {count + 2}: {fact}" in str(caught.value)
    assert "Fix: " in str(caught.value)
    assert "Error" not in str(caught.value)


def test_bytes_that_are_not_utf_8_are_reported(folder):
    write_qrels(folder, *LINES)
    (folder / "queries.jsonl").write_bytes(b'{"_id": "q1", "text": "Caf\xe9"}\n')
    with pytest.raises(CaprError, match=r"queries\.jsonl, line 1: the line is not JSON .* Fix: "):
        beir(folder, "bm25", silent)


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels.tsv"])
def test_a_missing_file_is_reported(folder, name):
    write_qrels(folder, *LINES)
    (folder / name).unlink()
    with pytest.raises(CaprError, match=r"there is no .*Fix: "):
        beir(folder, "bm25", silent)


def test_vectors_and_a_ranker_can_be_used(folder, tiny_encoder, tiny_ranker):
    write_qrels(folder, *LINES)
    for name in (str(tiny_encoder), f"bm25+{tiny_encoder}", f"bm25+{tiny_encoder}>{tiny_ranker}"):
        task, run = beir(folder, name, silent)
        assert run.keys() == {query.id for query in task.queries}
        assert all(scores.keys() == CORPUS.keys() for scores in run.values())


@pytest.mark.parametrize(("form", "least"), [("question", 0.7), ("tuple", 0.65)])
def test_bm25_answers_the_samples(form, least):
    task, run = shipped_samples("bm25", form, silent)
    questions = {
        question.id: question
        for question in samples.questions()
        if question.answers and (question.question is None) == (form == "tuple")
    }
    assert [query.id for query in task.queries] == list(questions)
    assert run.keys() == questions.keys()
    for query in task.queries:
        assert query.relevant
        assert query.relevant <= task.passages.keys()
        assert run[query.id].keys() <= task.passages.keys()
        for answer in questions[query.id].answers:
            assert any(begins_in(answer, id, task.passages[id]) for id in query.relevant)
    report = measure(task, run, "bm25", form)
    assert least < report.measures["R@10"] < 1
    assert set(report.by("collection", "R@10")) == {question.collection for question in questions.values()}


def begins_in(answer, id, text):
    document, _, begin = id.rpartition(":")
    return document == answer.document and 0 <= answer.span.begin - int(begin) < len(text)


def test_names_of_settings():
    assert Setting.of("bm25") == Setting("lexical")
    assert Setting.of("out/bi") == Setting("dense", "out/bi")
    assert Setting.of("out/bi+bm25>out/cross") == Setting("hybrid", "out/bi", "out/cross")
    assert Setting.of("bm25>out/cross") == Setting("lexical", "none", "out/cross")
    assert Setting.of("bm25+encoder").encoder.endswith("encoder")


@pytest.mark.parametrize("name", ["a+b", "bm25+a+b", "a+b>c"])
def test_settings_that_a_library_lacks_are_reported(name):
    with pytest.raises(CaprError, match=r"a library cannot search with .* Fix: "):
        Setting.of(name)


@pytest.mark.parametrize("name", ["old.run", "bm25>old.run", "none.run"])
def test_a_run_cannot_search(folder, monkeypatch, name):
    monkeypatch.chdir(folder)
    (folder / "old.run").write_text("q1 Q0 d1 1 1 x\n")
    run = name.rpartition(">")[2]
    with pytest.raises(CaprError) as caught:
        beir(folder, name, silent)
    assert f"searches a library, and a library cannot search with {name}, because {run} is a run." in str(caught.value)
    assert str(caught.value).endswith(f"and a ranker after >; compare another model with this run by --against {run}.")


def test_a_model_in_the_place_of_another_kind_is_reported(tiny_encoder, tiny_ranker):
    with pytest.raises(CaprError, match=r"cannot search with a ranker \(.*\) as its encoder\. Fix: name it after >"):
        Setting.of(str(tiny_ranker)).check()
    with pytest.raises(CaprError, match=r"cannot search with an encoder \(.*\) as its ranker\. Fix: name it before >"):
        Setting.of(f"bm25>{tiny_encoder}").check()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no/such/model", "there is no model no/such/model. Fix: use bm25, encoder, or the folder of a model."),
        ("bm52", "there is no model bm52. Did you mean bm25? Fix: use bm25, encoder, or the folder of a model."),
        ("bm25+encodr", "there is no model encodr. Did you mean encoder? Fix: use bm25, encoder, or the folder of a"),
        ("bm25>rankr", "there is no model rankr. Did you mean ranker? Fix: use ranker, or the folder of a model."),
    ],
)
def test_a_missing_model_is_reported(folder, monkeypatch, name, message):
    for role in ("encoder", "ranker"):
        (folder / role).mkdir()
    monkeypatch.setenv("CAPR_WEIGHTS", str(folder))
    for rank in (lambda: beir(folder, name, silent), lambda: shipped_samples(name, "question", silent)):
        with pytest.raises(CaprError) as caught:
            rank()
        assert message in str(caught.value)


def test_the_samples_have_gold_sentences():
    task, _ = shipped_samples("bm25", "question", lambda done, total: None)
    gold = [
        (task.passages[id], span) for query in task.queries for id, spans in query.sentences.items() for span in spans
    ]
    assert len(gold) > 150
    assert all(id in query.relevant for query in task.queries for id in query.sentences)
    assert all(span.of(text).strip() == span.of(text) for text, span in gold)
    assert set(task.sentences) == set(task.passages)
    assert all(spans[-1].end <= len(task.passages[id]) for id, spans in task.sentences.items())

"""BEIR's folders and the questions that ship, through a library."""

import json

import pytest

from capr import samples
from capr.documents import CaprError
from capr.evaluate.measures import measure
from capr.evaluate.through_library import Setting, beir, shipped_samples

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


def judged(folder, *lines, name="qrels.tsv"):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("".join(line.replace(" ", "\t") + "\n" for line in lines))


LINES = ("q1 d1 1", "q2 d2 2", "q3 d1 0", "q4 d3 1", "q5 d4 1")


def test_every_query_is_asked_of_the_whole_corpus(folder):
    judged(folder, *LINES)
    task, run = beir(folder, "bm25", silent)
    assert (task.name, list(task.passages)) == ("beir", list(CORPUS))
    assert {asked.id: asked.relevant for asked in task.asked} == {
        "q1": {"d1"}, "q2": {"d2"}, "q4": {"d3"}, "q5": {"d4"},
    }  # fmt: skip
    assert measure(task, run, "bm25", "question").measures["RR"] > 0.7


def test_quotes_signs_and_colons_in_a_question_are_no_operators(folder):
    judged(folder, *LINES)
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
def test_judgements_with_and_without_header_in_three_or_four_columns(folder, lines):
    judged(folder, *lines, name="qrels/test.tsv")
    task, _ = beir(folder, "bm25", silent)
    assert {asked.id: asked.relevant for asked in task.asked} == {
        "q1": {"d1"}, "q2": {"d2"}, "q4": {"d3"}, "q5": {"d4"},
    }  # fmt: skip


def test_a_limit_asks_fewer_queries(folder):
    judged(folder, *LINES)
    told = []
    task, run = beir(folder, "bm25", lambda done, total: told.append((done, total)), limit=2)
    assert [asked.id for asked in task.asked] == [*run] == ["q1", "q2"]
    assert told[-1] == (6, 6)


@pytest.mark.parametrize("line", ["q2 d2", "q2 d2 good", "q2 d2 1 2 3", "q2,d2,1"])
def test_a_line_that_is_no_judgement_is_named(folder, line):
    judged(folder, "q1 d1 1", line)
    with pytest.raises(CaprError) as caught:
        beir(folder, "bm25", silent)
    assert f"{folder / 'qrels.tsv'}, line 2 " in str(caught.value)
    assert "Fix: " in str(caught.value)


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl"])
@pytest.mark.parametrize("line", ["{half", "[]", "null", '{"_id": "x"}', '{"_id": 7, "text": "seven"}', '"text"'])
def test_a_line_that_is_no_record_is_named(folder, name, line):
    judged(folder, *LINES)
    path = folder / name
    count = len(path.read_text().splitlines())
    path.write_text(f"{path.read_text()}\n{line}\n")
    with pytest.raises(CaprError) as caught:
        beir(folder, "bm25", silent)
    assert f"{path}, line {count + 2}: " in str(caught.value)
    assert "Fix: " in str(caught.value)


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels.tsv"])
def test_a_missing_file_is_named(folder, name):
    judged(folder, *LINES)
    (folder / name).unlink()
    with pytest.raises(CaprError, match=r"there is no .*Fix: "):
        beir(folder, "bm25", silent)


def test_vectors_and_a_ranker_can_be_used(folder, tiny_encoder, tiny_ranker):
    judged(folder, *LINES)
    for name in (str(tiny_encoder), f"bm25+{tiny_encoder}", f"bm25+{tiny_encoder}>{tiny_ranker}"):
        task, run = beir(folder, name, silent)
        assert run.keys() == {asked.id for asked in task.asked}
        assert all(scores.keys() == CORPUS.keys() for scores in run.values())


@pytest.mark.parametrize(("form", "least"), [("question", 0.7), ("tuple", 0.65)])
def test_the_samples_are_answered_by_words_alone(form, least):
    task, run = shipped_samples("bm25", form, silent)
    wanted = {q.id: q for q in samples.questions() if q.answers and (q.question is None) == (form == "tuple")}
    assert [asked.id for asked in task.asked] == list(wanted)
    assert run.keys() == wanted.keys()
    for asked in task.asked:
        assert asked.relevant
        assert asked.relevant <= task.passages.keys()
        assert run[asked.id].keys() <= task.passages.keys()
        for answer in wanted[asked.id].answers:
            assert any(begins_in(answer, id, task.passages[id]) for id in asked.relevant)
    report = measure(task, run, "bm25", form)
    assert least < report.measures["R@10"] < 1
    assert set(report.by("collection", "R@10")) == {q.collection for q in wanted.values()}


def begins_in(answer, id, text):
    document, _, begin = id.rpartition(":")
    return document == answer.document and 0 <= answer.span.begin - int(begin) < len(text)


def test_what_names_mean_to_a_library():
    assert Setting.of("bm25") == Setting("lexical")
    assert Setting.of("out/bi") == Setting("dense", "out/bi")
    assert Setting.of("out/bi+bm25>out/cross") == Setting("hybrid", "out/bi", "out/cross")
    assert Setting.of("bm25>out/cross") == Setting("lexical", "none", "out/cross")
    assert Setting.of("bm25+encoder").encoder.endswith("encoder")


@pytest.mark.parametrize("name", ["a+b", "bm25+a+b", "a+b>c"])
def test_what_a_library_cannot_do_is_told(name):
    with pytest.raises(CaprError, match=r"a library cannot search with .* Fix: "):
        Setting.of(name)


def test_a_model_that_is_not_there_is_told(folder):
    judged(folder, *LINES)
    for name in ("no/such/model", "bm25>no/such/model"):
        with pytest.raises(CaprError, match="Fix: "):
            beir(folder, name, silent)

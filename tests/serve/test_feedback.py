"""Feedback: kept, taken back, and learned from."""

import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from served import problem

from capr.serve.desk import Desk
from capr.serve.problems import ProblemError
from capr.train.pairs import Pairs


def judge(client, document, answers, begin=0, end=10, **asked):
    body = {"document": document, "begin": begin, "end": end, "answers": answers, **(asked or {"query": "lasix dose"})}
    return client.post("/api/feedback", json=body)


def exported(client, tmp_path):
    reply = client.get("/api/feedback/export")
    assert reply.headers["content-disposition"] == 'attachment; filename="feedback.pairs.gz"'
    file = tmp_path / "feedback.pairs.gz"
    file.write_bytes(reply.content)
    return Pairs.load(file)


def test_feedback_is_kept_and_the_last_word_counts(client, folder):
    assert judge(client, "a2", True).status_code == 201
    assert judge(client, "a2", False).json() == {"answers": False}
    (kept,) = Desk(folder).judgements()
    assert (kept.query, kept.document, kept.begin, kept.end, kept.answers) == ("lasix dose", "a2", 0, 10, 0)
    judge(client, "a2", None)
    assert Desk(folder).judgements() == []


def test_ones_own_judgements_of_a_query_come_back(client, tokens, trail):
    anna, bert = (client.with_token(tokens(name=name)) for name in ("anna", "bert"))
    for document, answers in (("a1", True), ("a2", False), ("b1", True)):
        judge(anna, document, answers)
    judge(anna, "a1", True, query="gout")
    judge(anna, "b1", None)
    given = anna.post("/api/feedback/given", json={"query": "lasix dose"}).json()["given"]
    assert sorted((one["document"], one["begin"], one["end"], one["answers"]) for one in given) == [
        ("a1", 0, 10, True), ("a2", 0, 10, False)
    ]  # fmt: skip
    assert (trail()[-1]["query"], set(trail()[-1]["documents"])) == ({"query": "lasix dose"}, {"a1", "a2"})
    assert bert.post("/api/feedback/given", json={"query": "lasix dose"}).json() == {"given": []}
    client.server.library.remove("a1")
    given = anna.post("/api/feedback/given", json={"query": "lasix dose"}).json()["given"]
    assert [one["document"] for one in given] == ["a2"]
    problem(anna.post("/api/feedback/given", json={}), 422)


def test_feedback_on_nothing(client):
    problem(judge(client, "none", True), 404)
    problem(judge(client, "a2", True, end=10_000), 422)
    problem(judge(client, "a2", True, begin=5, end=5), 422)
    problem(client.post("/api/feedback", json={"document": "a2", "begin": 0, "end": 4, "answers": True}), 422)
    problem(client.post("/api/feedback", json={"query": "x", "document": "a2", "begin": 0, "end": 4}), 422)


def test_feedback_of_one_token_is_limited(serve, tokens, folder):
    client = serve(feedback=2)
    one, other = (client.with_token(tokens(name=name)) for name in "ab")
    assert judge(one, "a2", True, query="first").status_code == 201
    assert judge(one, "a2", True, query="second").status_code == 201
    reply = judge(one, "a2", True, query="third")
    told = problem(reply, 409)
    assert "2 judgements of this token" in told["detail"]
    assert "answers: null" in told["fix"]
    assert "--feedback" in told["fix"]
    assert "retry-after" not in reply.headers  # waiting does not help
    assert judge(other, "a2", True, query="third").status_code == 201
    assert judge(one, "a2", False, query="first").status_code == 201  # the last word still counts
    judge(one, "a2", None, query="second")
    assert judge(one, "a2", True, query="third").status_code == 201
    kept = [(one.query, one.answers) for one in Desk(folder).judgements()]
    assert sorted(kept) == [("first", 0), ("third", 1), ("third", 1)]


def test_feedback_at_the_same_time_keeps_to_the_limit(folder):
    desk = Desk(folder)

    def say(i):
        with suppress(ProblemError):
            desk.judge("a", {"query": f"q{i}"}, ("a2", 0, 10), True, most=5)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(say, range(40)))
    assert len(desk.judgements()) == 5


def test_pairs_to_train_with(client, tmp_path):
    hits = client.hits("lasix", k=3)
    places = {hit["document"]: {"begin": hit["begin"], "end": hit["end"]} for hit in hits}
    judge(client, "a2", True, **places["a2"])
    judge(client, "b1", False, **places["b1"])
    judge(client, "c1", False, **places["c1"])
    judge(client, "b1", True, **places["b1"], entity="prednisone", aspect="plan")
    judge(client, "c1", True, **places["c1"], entity="edema")
    judge(client, "a1", False, query="nothing answers this")
    pairs = exported(client, tmp_path)
    texts = {text.document: text for text in pairs.passages}
    assert texts.keys() == {"a2", "b1", "c1"}
    assert texts["a2"].text == "PLAN: Lasix 40 mg daily."
    assert texts["b1"].title == "Secret visit of B"
    assert texts["b1"].heading == "PLAN"
    question, pair, entity = pairs.draws
    assert question.questions == ("lasix dose",)
    assert pairs.passages[question.passage].document == "a2"
    assert {pairs.passages[number].document for number in question.negatives} == {"b1", "c1"}
    assert pairs.answering(question) == {question.passage}
    assert (pair.names, pair.heading) == (("prednisone",), "plan")
    assert "prednisone" in pair.wordings("prednisone")[0]
    assert entity.questions == ("edema",)


def test_several_passages_answer(client, tmp_path):
    for document in ("a2", "c1"):
        judge(client, document, True)
    pairs = exported(client, tmp_path)
    assert len(pairs.draws) == 2
    assert pairs.answering(pairs.draws[0]) == {0, 1}


def test_what_was_removed_is_left_out(client, tmp_path):
    judge(client, "a2", True)
    judge(client, "c1", True)
    client.delete("/api/documents/c1")
    assert [text.document for text in exported(client, tmp_path).passages] == ["a2"]


def test_the_file_is_json_lines(client):
    judge(client, "a2", True)
    lines = gzip.decompress(client.get("/api/feedback/export").content).decode().splitlines()
    assert [next(iter(json.loads(line))) for line in lines] == ["text", "draw"]

"""Feedback: storing, withdrawing, and exporting as training pairs."""

import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from served import problem

from capr.serve.database import ServerDatabase
from capr.serve.problems import ProblemError
from capr.supervise.pairs import TrainingPairs


def judge(client, document, answers, begin=0, end=10, **query):
    body = {"document": document, "begin": begin, "end": end, "answers": answers, **(query or {"query": "lasix dose"})}
    return client.post("/api/feedback", json=body)


def export_pairs(client, tmp_path):
    reply = client.get("/api/feedback/export")
    assert reply.headers["content-disposition"] == 'attachment; filename="feedback.pairs.gz"'
    file = tmp_path / "feedback.pairs.gz"
    file.write_bytes(reply.content)
    return TrainingPairs.load(file)


def test_a_later_judgement_replaces_the_earlier_one(client, state):
    assert judge(client, "a2", True).status_code == 201
    assert judge(client, "a2", False).json() == {"answers": False}
    (judgement,) = ServerDatabase(state.database).judgements()
    assert (judgement.query, judgement.document, judgement.begin, judgement.end, judgement.answers) == (
        "lasix dose",
        "a2",
        0,
        10,
        0,
    )
    judge(client, "a2", None)
    assert ServerDatabase(state.database).judgements() == []


def test_callers_list_their_own_judgements_of_a_query(client, tokens, trail):
    anna, bert = (client.with_token(tokens(name=name)) for name in ("anna", "bert"))
    for document, answers in (("a1", True), ("a2", False), ("b1", True)):
        judge(anna, document, answers)
    judge(anna, "a1", True, query="gout")
    judge(anna, "b1", None)
    judgements = anna.post("/api/feedback/own", json={"query": "lasix dose"}).json()["judgements"]
    assert sorted((row["document"], row["begin"], row["end"], row["answers"]) for row in judgements) == [
        ("a1", 0, 10, True),
        ("a2", 0, 10, False),
    ]
    assert (trail()[-1]["query"], set(trail()[-1]["documents"])) == ({"query": "lasix dose"}, {"a1", "a2"})
    assert bert.post("/api/feedback/own", json={"query": "lasix dose"}).json() == {"judgements": []}
    client.server.library.remove("a1")
    judgements = anna.post("/api/feedback/own", json={"query": "lasix dose"}).json()["judgements"]
    assert [row["document"] for row in judgements] == ["a2"]
    problem(anna.post("/api/feedback/own", json={}), 422)


def test_feedback_on_a_missing_document_span_or_query_is_rejected(client):
    problem(judge(client, "none", True), 404)
    problem(judge(client, "a2", True, end=10_000), 422)
    problem(judge(client, "a2", True, begin=5, end=5), 422)
    problem(client.post("/api/feedback", json={"document": "a2", "begin": 0, "end": 4, "answers": True}), 422)
    problem(client.post("/api/feedback", json={"query": "x", "document": "a2", "begin": 0, "end": 4}), 422)


def test_feedback_of_one_token_is_limited(serve, tokens, state):
    client = serve(max_judgements=2)
    first, second = (client.with_token(tokens(name=name)) for name in "ab")
    assert judge(first, "a2", True, query="first").status_code == 201
    assert judge(first, "a2", True, query="second").status_code == 201
    reply = judge(first, "a2", True, query="third")
    error = problem(reply, 409)
    assert "already has 2 judgements" in error["detail"]
    assert "answers: null" in error["fix"]
    assert "--max-judgements" in error["fix"]
    assert "retry-after" not in reply.headers  # waiting does not help
    assert judge(second, "a2", True, query="third").status_code == 201
    assert judge(first, "a2", False, query="first").status_code == 201  # a replacement is always possible
    judge(first, "a2", None, query="second")
    assert judge(first, "a2", True, query="third").status_code == 201
    stored = [(judgement.query, judgement.answers) for judgement in ServerDatabase(state.database).judgements()]
    assert sorted(stored) == [("first", 0), ("third", 1), ("third", 1)]


def test_concurrent_feedback_stays_within_the_limit(state):
    database = ServerDatabase(state.database)

    def judge_one(i):
        with suppress(ProblemError):
            database.judge("a", {"query": f"q{i}"}, ("a2", 0, 10), True, limit=5)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(judge_one, range(40)))
    assert len(database.judgements()) == 5


def test_pairs_to_train_with(client, tmp_path):
    hits = client.hits("lasix", k=3)
    spans = {hit["document"]: {"begin": hit["begin"], "end": hit["end"]} for hit in hits}
    judge(client, "a2", True, **spans["a2"])
    judge(client, "b1", False, **spans["b1"])
    judge(client, "c1", False, **spans["c1"])
    judge(client, "b1", True, **spans["b1"], entity="prednisone", aspect="plan")
    judge(client, "c1", True, **spans["c1"], entity="edema")
    judge(client, "a1", False, query="nothing answers this")
    pairs = export_pairs(client, tmp_path)
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


def test_a_query_with_several_answering_passages(client, tmp_path):
    for document in ("a2", "c1"):
        judge(client, document, True)
    pairs = export_pairs(client, tmp_path)
    assert len(pairs.draws) == 2
    assert pairs.answering(pairs.draws[0]) == {0, 1}


def test_removed_documents_are_not_exported(client, tmp_path):
    judge(client, "a2", True)
    judge(client, "c1", True)
    client.delete("/api/documents/c1")
    assert [text.document for text in export_pairs(client, tmp_path).passages] == ["a2"]


def test_the_file_is_json_lines(client):
    judge(client, "a2", True)
    lines = gzip.decompress(client.get("/api/feedback/export").content).decode().splitlines()
    assert [next(iter(json.loads(line))) for line in lines] == ["text", "draw"]

"""Limits: of size, length, number, rate, time and concurrent work; nothing crashes, and every error has a fix."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from served import Client, problem

from capr.serve.limits import RateLimit, WrongTokens, read_body
from capr.serve.problems import ProblemError
from capr.serve.responses import PROBLEMS
from capr.serve.work_queue import WorkQueue


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_body_over_the_limit_is_rejected(serve):
    client = serve(max_body=1000, max_upload=5000)
    error = problem(client.post("/api/search", content=b"x" * 1001, headers={"content-type": "application/json"}), 413)
    assert "1,000 bytes" in error["detail"]
    assert (error["title"], error["type"]) == ("Content Too Large", "urn:capr:problem:content-too-large")
    error = problem(client.post("/api/search", json={}), 422)
    example = PROBLEMS[422]["content"]["application/problem+json"]["example"]
    assert (error["title"], error["type"]) == (example["title"], example["type"])
    chunks = (b"x" * 100 for _ in range(100))
    problem(client.post("/api/search", content=chunks, headers={"content-type": "application/json"}), 413)
    problem(client.post("/api/documents", content=b"x" * 5001, headers={"content-type": "application/json"}), 413)
    problem(client.post("/api/documents", content=b"x" * 3000, headers={"content-type": "application/json"}), 422)


def test_only_a_writer_has_the_limit_of_uploads(serve, tokens):
    client = serve(max_body=1000, max_upload=5000)
    for role, status in (("reader", 413), ("writer", 422)):
        headers = {"content-type": "application/json"}
        reply = client.with_token(tokens(role)).post("/api/documents", content=b"x" * 3000, headers=headers)
        problem(reply, status)


@pytest.mark.parametrize("length", [b"-1", b"1e9", b"abc", b"999999999999"])
def test_an_invalid_content_length_is_rejected(length):
    async def read():
        async def receive():
            raise AssertionError("the body was read")

        await read_body({"headers": [(b"content-length", length)]}, receive, 100, 1)

    with pytest.raises(ProblemError, match="more than 100 bytes"):
        asyncio.run(read())


def test_a_slow_body_is_rejected():
    async def read():
        async def receive():
            await asyncio.sleep(0.02)
            return {"type": "http.request", "body": b"x", "more_body": True}

        started = time.monotonic()
        with pytest.raises(ProblemError, match="had not arrived") as raised:
            await read_body({"headers": []}, receive, 10**6, 0.2)
        assert raised.value.status == 408
        assert time.monotonic() - started < 2

    asyncio.run(read())


NO_QUERY = "the body needs either query, or entity with or without aspect, but not both"


def test_long_queries_and_large_k_are_rejected(serve):
    client = serve(max_query_length=100, max_k=5)
    error = problem(client.post("/api/search", json={"query": "a" * 101, "k": 6}), 422)
    assert [field["field"] for field in error["errors"]] == ["body.query", "body.k"]
    assert error["fix"] == "write at most 100 characters; ask for at most 5"
    problem(client.post("/api/ask", json={"question": "a" * 101}), 422)
    problem(client.post("/api/documents/a1/scores", json={"entity": "a" * 101}), 422)
    problem(client.post("/api/search", json={"query": "a" * 100_001}), 422)
    problem(client.get("/api/suggest", params={"prefix": "a" * 201}), 422)
    assert client.search("a" * 100, k=5)


@pytest.mark.parametrize("text", ["", "  "])
@pytest.mark.parametrize("address", ["search", "export", "documents/a1/scores"])
def test_an_empty_query_is_reported_as_such(client, address, text):
    error = problem(client.post(f"/api/{address}", json={"query": text}), 422)
    assert error["errors"] == [{"field": "body.query", "problem": "the query is empty"}]
    assert error["fix"] == "write a question or words"


def test_the_number_of_patterns_is_limited(client, monkeypatch):
    patterns = {"document": [f"*{i}" for i in range(60)], "source!": [f"{i}*" for i in range(41)]}
    for address, more in (("search", {"query": "lasix"}), ("facets", {}), ("ask", {"question": "Lasix?"})):
        error = problem(client.post(f"/api/{address}", json={**more, "filters": patterns}), 422)
        assert "101 values with a *" in error["detail"]
    requested = []
    original = type(client.server.library.engine).values
    monkeypatch.setattr(
        type(client.server.library.engine),
        "values",
        lambda *arguments: requested.append(arguments[1]) or original(*arguments),
    )
    results = client.search("lasix " + " ".join(f"source:{i}*" for i in range(60)), filters={"source": ["e*", "w*"]})
    assert sum("at most 50 filters" in notice for notice in results["notices"]) == 10
    assert requested.count("source") < 60  # once for the patterns of a filter, and for each notice


def test_all_problems_of_a_request_are_reported_together(client):
    body = {
        "k": 0,
        "mode": "x",
        "group": "y",
        "neighbours": 99,
        "without": ["z"],
        "filters": {"date": "x..y"},
        "unknown": 1,
    }
    error = problem(client.post("/api/search", json=body), 422)
    fields = {field["field"].partition(".")[2].partition(".")[0] for field in error["errors"]}
    assert fields == {"", "k", "mode", "group", "neighbours", "without", "filters", "unknown"}
    assert [field["problem"] for field in error["errors"] if field["field"] == "body"] == [NO_QUERY]
    problem(client.post("/api/search", json={"query": "a", "entity": "b"}), 422)
    problem(client.post("/api/search", json={}), 422)
    problem(client.post("/api/search", content=b"{", headers={"content-type": "application/json"}), 422)
    problem(client.post("/api/search", content=b"\xff\xfe", headers={"content-type": "application/json"}), 422)
    problem(
        client.post("/api/search", content=b'{"query": "\\ud800"}', headers={"content-type": "application/json"}), 422
    )
    problem(client.post("/api/search", content=b"[" * 100_000, headers={"content-type": "application/json"}), 400)
    problem(client.get("/api/nothing"), 404)
    problem(client.put("/api/search"), 405)


def test_the_rate_limit_of_a_token(serve, tokens):
    client = serve(rate=1, burst=5)
    first, second = (
        client.with_token(tokens(name=name), address) for name, address in (("a", "10.0.0.1"), ("b", "10.0.0.2"))
    )
    replies = [first.get("/api/me") for _ in range(8)]
    assert [reply.status_code for reply in replies] == [200] * 5 + [429] * 3
    problem(replies[-1], 429)
    assert 1 <= int(replies[-1].headers["retry-after"]) <= 2
    assert second.get("/api/me").status_code == 200


def test_the_rate_limit_of_an_address(serve):
    client = serve(rate=1, burst=3)
    assert [Client(client.app, "", "10.0.0.9").get("/health").status_code for _ in range(4)] == [200] * 3 + [429]


def test_files_of_the_page_do_not_count_against_the_rate(serve):
    client = Client(serve(rate=1, burst=3).app, "", "10.0.0.9")
    assert {client.get("/page/main.js").status_code for _ in range(50)} == {200}
    assert client.get("/health").status_code == 200


def test_a_rate_limit_recovers():
    clock = Clock()
    rate = RateLimit(2, 2, clock)
    assert [rate.take("a") for _ in range(3)] == [0, 0, 0.5]
    clock.now = 0.5
    assert [rate.take("a"), rate.take("a")] == [0, 0.5]
    assert rate.take("b") == 0
    assert all(RateLimit(0, 1).take("a") == 0 for _ in range(100))


def test_a_thousand_wrong_tokens(serve, tokens, trail):
    client = serve(rate=0, wrong_tokens=20)
    good = client.with_token(tokens())
    statuses = [client.with_token(f"capr_{number}").get("/api/me").status_code for number in range(1000)]
    assert statuses[:20] == [401] * 20
    assert set(statuses[20:]) == {429}
    assert good.get("/api/me").status_code == 200
    assert "capr_wrong_tokens_total 1000" in good.get("/metrics").text
    assert len(trail()) == 22  # rejections for the rate are not recorded, so a flood does not fill the disk
    waits = [int(client.with_token("capr_x").get("/api/me").headers["retry-after"]) for _ in range(2)]
    assert max(waits) == 60


def test_wrong_tokens_are_forgotten_with_time():
    clock = Clock()
    wrong_tokens = WrongTokens(2, clock)

    def status():
        with pytest.raises(ProblemError) as raised:
            wrong_tokens.reject("a")
        return raised.value.status

    assert [status() for _ in range(3)] == [401, 401, 429]
    clock.now = 120
    assert status() == 401


def test_the_queue_is_bounded():
    async def main():
        work, go = WorkQueue(1, 2, 5), threading.Event()
        running = [asyncio.create_task(work.run(go.wait)) for _ in range(3)]
        await asyncio.sleep(0.05)
        with pytest.raises(ProblemError, match="already waiting") as raised:
            await work.run(go.wait)
        assert (raised.value.status, raised.value.retry_after is not None) == (503, True)
        go.set()
        assert await asyncio.gather(*running) == [True] * 3
        assert (work.running, work.waiting, work.refused) == (0, 0, 1)
        work.close()

    asyncio.run(main())


def test_the_wait_for_a_thread_is_bounded():
    async def main():
        work, go = WorkQueue(1, 5, 0.05), threading.Event()
        running = asyncio.create_task(work.run(go.wait))
        await asyncio.sleep(0.01)
        with pytest.raises(ProblemError, match="no thread was free"):
            await work.run(lambda: 1)
        go.set()
        await running
        assert await work.run(lambda: 1) == 1
        work.close()

    asyncio.run(main())


def test_a_request_cancelled_as_a_thread_becomes_free_does_not_keep_it():
    async def main():
        work, go = WorkQueue(1, 5, 5), threading.Event()
        for _ in range(3):
            running = asyncio.create_task(work.run(go.wait))
            await asyncio.sleep(0.01)
            waiting = asyncio.create_task(work.run(lambda: 1))
            await asyncio.sleep(0.01)
            go.set()
            await running
            while not work._free.locked():
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait({waiting})
            go.clear()
        assert await asyncio.wait_for(work.run(lambda: 1), 2) == 1
        assert (work.running, work.waiting) == (0, 0)
        work.close()

    asyncio.run(main())


def test_a_task_of_a_disconnected_client_never_begins():
    async def main():
        work, go, disconnected, done = WorkQueue(1, 5, 5), threading.Event(), asyncio.Event(), []
        running = asyncio.create_task(work.run(go.wait))
        await asyncio.sleep(0.01)
        waiting = asyncio.create_task(work.run(lambda: done.append(1), disconnected))
        await asyncio.sleep(0.01)
        disconnected.set()
        with pytest.raises(ProblemError, match="disconnected"):
            await waiting
        cancelled = asyncio.create_task(work.run(lambda: done.append(2)))
        await asyncio.sleep(0.01)
        cancelled.cancel()
        go.set()
        await running
        assert await work.run(lambda: 3, disconnected) == 3  # a task that need not wait runs
        assert (work.running, work.waiting, done) == (0, 0, [])
        work.close()

    asyncio.run(main())


def test_an_error_in_a_thread_leaves_the_thread_free():
    async def main():
        work = WorkQueue(1, 5, 1)
        for _ in range(5):
            with pytest.raises(ZeroDivisionError):
                await work.run(lambda: 1 / 0)
        assert await work.run(lambda: 1) == 1
        work.close()

    asyncio.run(main())


def test_a_busy_server_rejects_requests(serve, monkeypatch):
    client = serve(threads=1, max_waiting=1, rate=0)
    search, go = client.server.library.search, threading.Event()

    def slow(*arguments, **options):
        go.wait(10)
        return search(*arguments, **options)

    monkeypatch.setattr(client.server.library, "search", slow)
    with ThreadPoolExecutor(6) as threads:
        futures = [threads.submit(client.post, "/api/search", json={"query": "lasix"}) for _ in range(6)]
        time.sleep(0.3)
        assert client.get("/health").status_code == 200
        go.set()
        replies = [future.result() for future in futures]
    statuses = sorted(reply.status_code for reply in replies)
    assert statuses == [200, 200, 503, 503, 503, 503]
    assert all(reply.headers["retry-after"] for reply in replies if reply.status_code == 503)


def test_an_internal_error_reveals_nothing(client, monkeypatch):
    def broken(*arguments, **options):
        raise RuntimeError("the password is hunter2")

    monkeypatch.setattr(client.server.library, "search", broken)
    reply = client.post("/api/search", json={"query": "lasix"})
    problem(reply, 500)
    assert "hunter2" not in reply.text

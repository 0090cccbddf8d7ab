"""Limits: of size, length, number, rate, time and concurrent work; nothing crashes, and everything says what to do."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from served import Client, problem

from capr.serve.limits import Rate, WrongTokens, body
from capr.serve.problems import ProblemError
from capr.serve.replies import PROBLEMS
from capr.serve.work import Work


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_body_that_is_too_large(serve):
    client = serve(body=1000, upload=5000)
    told = problem(client.post("/api/search", content=b"x" * 1001, headers={"content-type": "application/json"}), 413)
    assert "1,000 bytes" in told["detail"]
    assert (told["title"], told["type"]) == ("Content Too Large", "urn:capr:problem:content-too-large")
    told = problem(client.post("/api/search", json={}), 422)
    described = PROBLEMS[422]["content"]["application/problem+json"]["example"]
    assert (told["title"], told["type"]) == (described["title"], described["type"])
    pieces = (b"x" * 100 for _ in range(100))
    problem(client.post("/api/search", content=pieces, headers={"content-type": "application/json"}), 413)
    problem(client.post("/api/documents", content=b"x" * 5001, headers={"content-type": "application/json"}), 413)
    problem(client.post("/api/documents", content=b"x" * 3000, headers={"content-type": "application/json"}), 422)


def test_only_a_writer_may_send_much(serve, tokens):
    client = serve(body=1000, upload=5000)
    for role, status in (("reader", 413), ("writer", 422)):
        headers = {"content-type": "application/json"}
        reply = client.with_token(tokens(role)).post("/api/documents", content=b"x" * 3000, headers=headers)
        problem(reply, status)


@pytest.mark.parametrize("length", [b"-1", b"1e9", b"abc", b"999999999999"])
def test_a_length_that_is_none(length):
    async def read():
        async def receive():
            raise AssertionError("it was read all the same")

        await body({"headers": [(b"content-length", length)]}, receive, 100, 1)

    with pytest.raises(ProblemError, match="more than 100 bytes"):
        asyncio.run(read())


def test_a_body_that_comes_too_slowly():
    async def read():
        async def receive():
            await asyncio.sleep(0.02)
            return {"type": "http.request", "body": b"x", "more_body": True}

        begun = time.monotonic()
        with pytest.raises(ProblemError, match="had not arrived") as told:
            await body({"headers": []}, receive, 10**6, 0.2)
        assert told.value.status == 408
        assert time.monotonic() - begun < 2

    asyncio.run(read())


def test_too_much_is_asked_for(serve):
    client = serve(longest_query=100, largest_k=5)
    told = problem(client.post("/api/search", json={"query": "a" * 101, "k": 6}), 422)
    assert [one["field"] for one in told["errors"]] == ["query", "k"]
    problem(client.post("/api/ask", json={"question": "a" * 101}), 422)
    problem(client.post("/api/documents/a1/scores", json={"entity": "a" * 101}), 422)
    problem(client.post("/api/search", json={"query": "a" * 100_001}), 422)
    problem(client.get("/api/suggest", params={"typed": "a" * 201}), 422)
    assert client.search("a" * 100, k=5)


def test_patterns_are_few(client, monkeypatch):
    patterns = {"document": [f"*{i}" for i in range(60)], "source!": [f"{i}*" for i in range(41)]}
    for address, more in (("search", {"query": "lasix"}), ("facets", {}), ("ask", {"question": "Lasix?"})):
        told = problem(client.post(f"/api/{address}", json={**more, "filters": patterns}), 422)
        assert "101 values with a *" in told["detail"]
    looked = []
    whole = type(client.server.library.engine).values
    monkeypatch.setattr(
        type(client.server.library.engine), "values", lambda *given: looked.append(given[1]) or whole(*given)
    )
    found = client.search("lasix " + " ".join(f"source:{i}*" for i in range(60)), filters={"source": ["e*", "w*"]})
    assert sum("at most 50 filters" in notice for notice in found["notices"]) == 10
    assert looked.count("source") < 60  # once for the patterns of a filter, and for each notice


def test_all_that_is_wrong_is_told_at_once(client):
    body = {
        "k": 0,
        "mode": "x",
        "group": "y",
        "neighbours": 99,
        "without": ["z"],
        "filters": {"date": "x..y"},
        "unknown": 1,
    }
    told = problem(client.post("/api/search", json=body), 422)
    fields = {one["field"].split(".")[1] for one in told["errors"]}
    assert {"k", "mode", "group", "neighbours", "without", "filters", "unknown"} <= fields
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


def test_the_rate_of_a_token(serve, tokens):
    client = serve(rate=1, burst=5)
    one, other = (
        client.with_token(tokens(name=name), address) for name, address in (("a", "10.0.0.1"), ("b", "10.0.0.2"))
    )
    replies = [one.get("/api/me") for _ in range(8)]
    assert [reply.status_code for reply in replies] == [200] * 5 + [429] * 3
    problem(replies[-1], 429)
    assert 1 <= int(replies[-1].headers["retry-after"]) <= 2
    assert other.get("/api/me").status_code == 200


def test_the_rate_of_an_address(serve):
    client = serve(rate=1, burst=3)
    assert [Client(client.app, "", "10.0.0.9").get("/health").status_code for _ in range(4)] == [200] * 3 + [429]


def test_files_of_the_page_do_not_count_against_the_rate(serve):
    client = Client(serve(rate=1, burst=3).app, "", "10.0.0.9")
    assert {client.get("/page/main.js").status_code for _ in range(50)} == {200}
    assert client.get("/health").status_code == 200


def test_a_rate_recovers():
    clock = Clock()
    rate = Rate(2, 2, clock)
    assert [rate.take("a") for _ in range(3)] == [0, 0, 0.5]
    clock.now = 0.5
    assert [rate.take("a"), rate.take("a")] == [0, 0.5]
    assert rate.take("b") == 0
    assert all(Rate(0, 1).take("a") == 0 for _ in range(100))


def test_a_thousand_wrong_tokens(serve, tokens, trail):
    client = serve(rate=0, wrong_tokens=20)
    good = client.with_token(tokens())
    statuses = [client.with_token(f"capr_{number}").get("/api/me").status_code for number in range(1000)]
    assert statuses[:20] == [401] * 20
    assert set(statuses[20:]) == {429}
    assert good.get("/api/me").status_code == 200
    assert "capr_wrong_tokens_total 1000" in good.get("/metrics").text
    assert len(trail()) == 22  # a flood of them does not fill the disk
    waits = [int(client.with_token("capr_x").get("/api/me").headers["retry-after"]) for _ in range(2)]
    assert max(waits) == 60


def test_wrong_tokens_are_forgiven():
    clock = Clock()
    wrong = WrongTokens(2, clock)

    def status():
        with pytest.raises(ProblemError) as told:
            wrong.count_one("a")
        return told.value.status

    assert [status() for _ in range(3)] == [401, 401, 429]
    clock.now = 120
    assert status() == 401


def test_only_so_much_work_waits():
    async def main():
        work, go = Work(1, 2, 5), threading.Event()
        running = [asyncio.create_task(work.run(go.wait)) for _ in range(3)]
        await asyncio.sleep(0.05)
        with pytest.raises(ProblemError, match="waiting already") as told:
            await work.run(go.wait)
        assert (told.value.status, told.value.retry_after is not None) == (503, True)
        go.set()
        assert await asyncio.gather(*running) == [True] * 3
        assert (work.running, work.waiting, work.refused) == (0, 0, 1)
        work.close()

    asyncio.run(main())


def test_work_does_not_wait_for_ever():
    async def main():
        work, go = Work(1, 5, 0.05), threading.Event()
        running = asyncio.create_task(work.run(go.wait))
        await asyncio.sleep(0.01)
        with pytest.raises(ProblemError, match="no thread was free"):
            await work.run(lambda: 1)
        go.set()
        await running
        assert await work.run(lambda: 1) == 1
        work.close()

    asyncio.run(main())


def test_whoever_goes_as_a_thread_becomes_free_takes_none_along():
    async def main():
        work, go = Work(1, 5, 5), threading.Event()
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


def test_nobody_waits_any_more():
    async def main():
        work, go, gone, done = Work(1, 5, 5), threading.Event(), asyncio.Event(), []
        running = asyncio.create_task(work.run(go.wait))
        await asyncio.sleep(0.01)
        waiting = asyncio.create_task(work.run(lambda: done.append(1), gone))
        await asyncio.sleep(0.01)
        gone.set()
        with pytest.raises(ProblemError, match="has gone"):
            await waiting
        cancelled = asyncio.create_task(work.run(lambda: done.append(2)))
        await asyncio.sleep(0.01)
        cancelled.cancel()
        go.set()
        await running
        assert await work.run(lambda: 3, gone) == 3  # what can begin at once is done
        assert (work.running, work.waiting, done) == (0, 0, [])
        work.close()

    asyncio.run(main())


def test_an_error_in_a_thread_leaves_the_thread_free():
    async def main():
        work = Work(1, 5, 1)
        for _ in range(5):
            with pytest.raises(ZeroDivisionError):
                await work.run(lambda: 1 / 0)
        assert await work.run(lambda: 1) == 1
        work.close()

    asyncio.run(main())


def test_a_server_that_has_too_much_to_do(serve, monkeypatch):
    client = serve(threads=1, waiting=1, rate=0)
    search, go = client.server.library.search, threading.Event()

    def slow(*arguments, **options):
        go.wait(10)
        return search(*arguments, **options)

    monkeypatch.setattr(client.server.library, "search", slow)
    with ThreadPoolExecutor(6) as threads:
        asked = [threads.submit(client.post, "/api/search", json={"query": "lasix"}) for _ in range(6)]
        time.sleep(0.3)
        assert client.get("/health").status_code == 200
        go.set()
        replies = [one.result() for one in asked]
    statuses = sorted(reply.status_code for reply in replies)
    assert statuses == [200, 200, 503, 503, 503, 503]
    assert all(reply.headers["retry-after"] for reply in replies if reply.status_code == 503)


def test_something_breaks_inside(client, monkeypatch):
    def broken(*arguments, **options):
        raise RuntimeError("the password is hunter2")

    monkeypatch.setattr(client.server.library, "search", broken)
    reply = client.post("/api/search", json={"query": "lasix"})
    problem(reply, 500)
    assert "hunter2" not in reply.text

"""A real server: its processes, how it starts and stops, slow clients and huge bodies."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from capr.serve.desk import Desk

START = """
import json, sys, time
from capr.search import Library
from capr.serve.run import serve
from capr.serve.settings import Settings
given = json.loads(sys.argv[1])
sys.exit(serve(Settings(**given), lambda address: print(address, flush=True)))
"""
SLOW = """
import time
from capr.search import Library
search = Library.search
def slow(self, query, *arguments, **options):
    if "slowly" in str(query):
        time.sleep(1.5)
    return search(self, query, *arguments, **options)
Library.search = slow
"""


@contextmanager
def running(folder, before="", **settings):
    """A server of its own, at a port that is free; ended by its id."""
    given = {"library": str(folder), "encoder": "none", "ranker": "none", "reader": "none", "port": 0, **settings}
    command = [sys.executable, "-c", before + START, json.dumps(given)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        if not line.startswith("http"):
            raise AssertionError(process.communicate()[1])
        process.port = urlsplit(line.strip()).port
        wait_until_ready(process.port)
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        process.stderr.close()


def ask(port, method, path, body=None, headers=(), timeout=30):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        content = json.dumps(body).encode() if body is not None else None
        kind = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, content, {**kind, **dict(headers)})
        reply = connection.getresponse()
        return reply.status, dict(reply.getheaders()), reply.read()
    finally:
        connection.close()


def search(port, query="lasix"):
    return ask(port, "POST", "/api/search", {"query": query})


def wait_until_ready(port):
    for _ in range(300):
        try:
            if ask(port, "GET", "/ready")[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise AssertionError("it did not become ready")


def test_it_starts_answers_and_stops(folder):
    with running(folder) as server:
        status, headers, content = search(server.port)
        assert status == 200
        assert len(json.loads(content)["hits"]) == 3
        assert "server" not in {name.lower() for name in headers}
        server.send_signal(signal.SIGTERM)
        assert server.wait(15) == 0
        assert "Traceback" not in server.stderr.read()


def test_head_is_get_without_a_body(folder):
    with running(folder) as server:
        for path in ("/", "/health", "/ready", "/page/main.js"):
            status, headers, content = ask(server.port, "GET", path)
            with socket.create_connection(("127.0.0.1", server.port), 30) as raw:
                raw.sendall(f"HEAD {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
                head, _, rest = b"".join(iter(partial(raw.recv, 65536), b"")).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            assert f"content-length: {len(content)}".encode() in head.lower()
            assert f"content-type: {headers['content-type']}".encode() in head.lower()
            assert (status, rest) == (200, b"")


def test_the_command(folder):
    command = [
        sys.executable,
        "-m",
        "capr",
        "serve",
        str(folder),
        "--port",
        "0",
        "--encoder",
        "none",
        "--ranker",
        "none",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        found = re.search(r"is served at http://127\.0\.0\.1:(\d+)/", process.stdout.readline())
        wait_until_ready(int(found[1]))
        assert search(int(found[1]))[0] == 200
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(15) in (0, 130)
        process.stdout.close()


def test_the_command_that_requires_a_token(folder):
    options = ("--port", "0", "--encoder", "none", "--ranker", "none", "--workers", "2", "--require-token")
    command = [sys.executable, "-m", "capr", "serve", str(folder), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        found = re.search(r"is served at http://127\.0\.0\.1:(\d+)/", process.stdout.readline())
        wait_until_ready(int(found[1]))
        status, _, content = search(int(found[1]))
        assert status == 401
        assert b"has no token yet" in content
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        process.stdout.close()


def test_a_port_that_is_taken(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        command = [sys.executable, "-m", "capr", "serve", str(folder), "--port", str(taken.getsockname()[1])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_host_that_others_reach_is_refused(folder):
    command = [sys.executable, "-m", "capr", "serve", str(folder), "--host", "0.0.0.0", "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "capr token create" in done.stderr


def test_what_runs_is_finished(folder):
    with running(folder, before=SLOW) as server:
        replies = []
        asking = threading.Thread(target=lambda: replies.append(search(server.port, "lasix slowly")))
        asking.start()
        time.sleep(0.5)
        server.send_signal(signal.SIGTERM)
        asking.join()
        assert replies[0][0] == 200
        assert server.wait(15) == 0
        with pytest.raises(ConnectionRefusedError):
            search(server.port)
    entries = [json.loads(line) for line in (folder / "audit" / "audit.jsonl").read_text().splitlines()]
    assert entries[-1]["query"] == {"query": "lasix slowly"}


def test_what_nobody_waits_for_is_not_done(folder):
    with running(folder, before=SLOW, threads=1) as server:
        leaving = []
        for _ in range(5):
            connection = socket.create_connection(("127.0.0.1", server.port))
            body = b'{"query": "lasix slowly"}'
            head = f"POST /api/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
            leaving.append(connection)
        time.sleep(0.3)
        for connection in leaving:
            connection.close()
        begun = time.monotonic()
        assert search(server.port)[0] == 200
        assert time.monotonic() - begun < 4  # one of them had begun; five would have taken 7.5 seconds


def test_replies_come_at_once(folder):
    with running(folder) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        took = []
        for _ in range(20):
            begun = time.perf_counter()
            connection.request("GET", "/health")
            connection.getresponse().read()
            took.append(time.perf_counter() - begun)
        connection.close()
        assert sorted(took)[5] < 0.03  # and do not wait 40 ms for a confirmation


def test_whoever_follows_a_job_does_not_keep_the_server(folder):
    job = Desk(folder).new_job("", False, 1)  # its documents never come
    with running(folder) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request("GET", f"/api/jobs/{job.id}/events")
        reply = connection.getresponse()
        assert b'"state": "waiting"' in reply.readline()
        begun = time.monotonic()
        server.send_signal(signal.SIGTERM)
        reply.read()
        assert server.wait(20) == 0
        assert time.monotonic() - begun < 10
        connection.close()


def test_the_address_that_a_proxy_on_this_machine_tells(folder, tokens):
    token = tokens()
    with running(folder) as server:
        headers = {"Authorization": f"Bearer {token}", "X-Forwarded-For": "10.1.2.3"}
        assert ask(server.port, "GET", "/api/me", headers=headers)[0] == 200
    (entry,) = [json.loads(line) for line in (folder / "audit" / "audit.jsonl").read_text().splitlines()]
    assert entry["address"] == "10.1.2.3"


def test_several_workers(folder):
    with running(folder, workers=3, rate=0) as server:
        for _ in range(60):
            assert search(server.port)[0] == 200
        time.sleep(1.2)
        for _ in range(9):
            search(server.port)
        workers = children(server.pid)
        assert len(workers) == 3
        text = metrics_of(server.port)
        count = float(
            re.search(r'capr_requests_total\{method="POST",route="/api/search",status="200"\} (\d+)', text)[1]
        )
        assert 55 <= count <= 69  # those of the last second may be missing
        os.kill(workers[0], signal.SIGKILL)  # one dies; it is begun again, and nobody else notices
        time.sleep(0.5)
        assert search(server.port)[0] == 200
        assert wait_for(lambda: len(children(server.pid)) == 3 and workers[0] not in children(server.pid))
        job = json.loads(
            ask(server.port, "POST", "/api/documents", {"documents": [{"id": "w", "text": "Worker."}]})[2]
        )["job"]
        assert wait_for(lambda: json.loads(ask(server.port, "GET", f"/api/jobs/{job}")[2])["state"] == "done")
        assert all(json.loads(search(server.port, "worker")[2])["hits"] for _ in range(9))  # whichever is asked
        workers = children(server.pid)
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == 0
    assert not any(is_alive(worker) for worker in workers)


def test_workers_do_not_outlive_the_server(folder):
    with running(folder, workers=2) as server:
        workers = children(server.pid)
        assert len(workers) == 2
        server.kill()
        server.wait()
        assert wait_for(lambda: not any(is_alive(worker) for worker in workers))


def test_a_worker_that_is_killed_soon_is_begun_again(folder):
    with running(folder, workers=2) as server:
        for _ in range(2):
            before = set(children(server.pid))
            os.kill(min(before), signal.SIGKILL)  # by a machine that is short of memory, say; the other one serves on
            assert wait_for(partial(is_whole_again, server.pid, before))
            assert search(server.port)[0] == 200


def is_whole_again(pid, before):
    """Whether one of two workers, the first, was begun again, and the other was left alone."""
    now = set(children(pid))
    return len(now) == 2 and now & before == {max(before)}


def test_workers_that_are_killed_again_and_again_end_the_server(folder):
    with running(folder, workers=2) as server:
        for _ in range(20):
            for worker in children(server.pid):
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
            if server.poll() is not None:
                break
            time.sleep(0.25)
        assert server.wait(20) != 0


def test_workers_that_cannot_start_say_why(folder):
    given = {"library": str(folder), "deidentify": "no:Such", "workers": 2, "port": 0}
    command = [sys.executable, "-c", START, json.dumps(given)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    assert "no:Such" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_body_of_a_hundred_megabytes(folder):
    with running(folder) as server:
        for path in ("/api/search", "/api/documents"):
            assert large(server.port, path, chunked=False) == 413
            assert large(server.port, path, chunked=True) == 413
        assert resident(server.pid) < 600_000_000
        assert search(server.port)[0] == 200


def large(port, path, chunked):
    """The status of a request of 100 MB, which the server does not read to its end."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        length = "Transfer-Encoding: chunked" if chunked else "Content-Length: 100000000"
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{length}\r\n\r\n"
        connection.sendall(head.encode())
        piece = b"a" * 100_000
        try:
            for _ in range(1000):
                connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
        except OSError:
            pass  # it has hung up
        try:
            return int(connection.recv(4096).split()[1])
        except (OSError, IndexError):
            return 413 if search(port)[0] == 200 else None


def test_slow_clients(folder):
    with running(folder, body_seconds=1.0, rate=0) as server:
        slow = []
        for number in range(60):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
            head = "POST /api/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            connection.sendall(head.encode() if number % 2 else f"{head}Content-Length: 1000\r\n\r\n{{".encode())
            slow.append(connection)
        begun = time.monotonic()
        assert search(server.port)[0] == 200  # others do not wait for them
        assert time.monotonic() - begun < 5
        answered = [connection.recv(4096) for connection in slow[::2]]
        assert all(reply.startswith(b"HTTP/1.1 408") for reply in answered)
        assert all(connection.recv(4096) == b"" for connection in slow[1::2])  # whose headers never came
        for connection in slow:
            connection.close()


def test_clients_that_read_nothing(folder):
    """Many replies, or one that fits into what is written at once: nobody keeps a connection for ever."""
    with running(folder, body_seconds=0.5, rate=0) as server:
        before = connections(server.pid)
        slow = []
        for number in range(4):
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            connection.connect(("127.0.0.1", server.port))
            connection.settimeout(0.2)
            with suppress(OSError):  # the server does not read more of them than it answers
                for _ in range(20_000 if number % 2 else 300):
                    connection.sendall(b"GET /page/results.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            slow.append(connection)
        assert search(server.port)[0] == 200
        assert wait_for(lambda: connections(server.pid) <= before)
        for connection in slow:
            connection.close()


def connections(pid):
    """Sockets that a process has, those at which it listens among them."""
    found = 0
    for opened in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # it was closed meanwhile
            found += str(opened.readlink()).startswith("socket:")
    return found


def test_it_takes_requests_while_the_models_are_loaded(folder):
    load = """
import time
from capr.serve.server import Server
load = Server.load
def slowly(self):
    time.sleep(1.0)
    load(self)
Server.load = slowly
"""
    given = {"library": str(folder), "encoder": "none", "ranker": "none", "port": 0}
    process = subprocess.Popen(
        [sys.executable, "-c", load + START, json.dumps(given)], stdout=subprocess.PIPE, text=True
    )
    try:
        port = urlsplit(process.stdout.readline().strip()).port
        assert ask(port, "GET", "/health")[0] == 200
        status, headers, _ = ask(port, "GET", "/ready")
        assert (status, headers["retry-after"]) == (503, "2")
        assert search(port)[0] == 200  # it waits
        assert ask(port, "GET", "/ready")[0] == 200
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(15)
        process.stdout.close()


# --- processes ---


def metrics_of(port):
    return ask(port, "GET", "/metrics")[2].decode()


def children(pid):
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found if is_alive(int(child))]


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def resident(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def wait_for(true, seconds=20):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if true():
            return True
        time.sleep(0.05)
    return False

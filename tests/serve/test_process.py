"""A real server: how it starts, answers and stops."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from functools import partial
from urllib.parse import urlsplit

import pytest
from processes import SLOW, START, ask, running, search, wait_until_ready

from capr.documents import CaprError
from capr.runtime.kinds import load_model
from capr.runtime.shipped import shipped
from capr.search.models import answer_reader, load_encoder
from capr.serve.launcher import check
from capr.serve.settings import Settings


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
        match = re.search(r"Serving \S+ at http://127\.0\.0\.1:(\d+)/", process.stdout.readline())
        wait_until_ready(int(match[1]))
        assert search(int(match[1]))[0] == 200
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(15) in (0, 130)
        process.stdout.close()


def test_the_command_that_requires_a_token(folder):
    options = ("--port", "0", "--encoder", "none", "--ranker", "none", "--workers", "2", "--require-token")
    command = [sys.executable, "-m", "capr", "serve", str(folder), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        match = re.search(r"Serving \S+ at http://127\.0\.0\.1:(\d+)/", process.stdout.readline())
        wait_until_ready(int(match[1]))
        status, _, content = search(int(match[1]))
        assert status == 401
        assert b"has no token yet" in content
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        process.stdout.close()


def test_a_port_in_use_is_an_error(folder):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        command = [sys.executable, "-m", "capr", "serve", str(folder), "--port", str(listener.getsockname()[1])]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 2
    assert "--port" in process.stderr
    assert "Traceback" not in process.stderr


def test_a_public_host_without_tokens_is_rejected(folder):
    command = [sys.executable, "-m", "capr", "serve", str(folder), "--host", "0.0.0.0", "--port", "0"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 2
    assert "capr token create" in process.stderr


def test_a_folder_without_a_model_is_an_error_before_the_address_is_printed(folder):
    command = [sys.executable, "-m", "capr", "serve", str(folder), "--port", "0", "--ranker", "nofolder"]
    process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr.startswith("Error: there is no folder nofolder. Fix: name the folder")


@pytest.mark.shipped
@pytest.mark.parametrize("role", ["encoder", "ranker", "discourse", "reader"])
def test_the_server_checks_the_folders_of_models_as_other_commands_do(folder, tmp_path, role):
    load = {"encoder": load_encoder, "reader": answer_reader}.get(role, partial(load_model, role=role))
    wrong_kind = shipped("encoder" if role == "ranker" else "ranker")
    for model in (tmp_path / "nofolder", folder, wrong_kind):
        with pytest.raises(CaprError) as expected:
            load(str(model))
        with pytest.raises(CaprError) as raised:
            check(Settings(library=str(folder), **{role: str(model)}))
        assert str(raised.value) == str(expected.value)


@pytest.mark.shipped
def test_the_server_accepts_no_models_and_those_that_ship(folder):
    check(Settings(library=str(folder), encoder="none", ranker="none", discourse="none", reader="none"))
    check(Settings(library=str(folder), encoder="capr"))
    check(
        Settings(
            library=str(folder),
            encoder=str(shipped("encoder")),
            ranker=str(shipped("ranker")),
            reader=str(shipped("reader")),
        )
    )


def test_running_requests_finish_before_the_server_stops(folder, state):
    with running(folder, before=SLOW) as server:
        replies = []
        searching = threading.Thread(target=lambda: replies.append(search(server.port, "lasix slowly")))
        searching.start()
        time.sleep(0.5)
        server.send_signal(signal.SIGTERM)
        searching.join()
        assert replies[0][0] == 200
        assert server.wait(15) == 0
        with pytest.raises(ConnectionRefusedError):
            search(server.port)
    entries = [json.loads(line) for line in (state.audit / "audit.jsonl").read_text().splitlines()]
    assert entries[-1]["query"] == {"query": "lasix slowly"}


def test_requests_of_disconnected_clients_never_begin(folder):
    with running(folder, before=SLOW, threads=1) as server:
        connections = []
        for _ in range(5):
            connection = socket.create_connection(("127.0.0.1", server.port))
            body = b'{"query": "lasix slowly"}'
            head = f"POST /api/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
            connections.append(connection)
        time.sleep(0.3)
        for connection in connections:
            connection.close()
        started = time.monotonic()
        assert search(server.port)[0] == 200
        assert time.monotonic() - started < 4  # one search was running; five would take 7.5 seconds


def test_the_client_address_that_a_local_proxy_reports(folder, tokens, state):
    token = tokens()
    with running(folder) as server:
        headers = {"Authorization": f"Bearer {token}", "X-Forwarded-For": "10.1.2.3"}
        assert ask(server.port, "GET", "/api/me", headers=headers)[0] == 200
    (entry,) = [json.loads(line) for line in (state.audit / "audit.jsonl").read_text().splitlines()]
    assert entry["address"] == "10.1.2.3"


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
    settings = {"library": str(folder), "encoder": "none", "ranker": "none", "port": 0}
    process = subprocess.Popen(
        [sys.executable, "-c", load + START, json.dumps(settings)], stdout=subprocess.PIPE, text=True
    )
    try:
        port = urlsplit(process.stdout.readline().strip()).port
        assert ask(port, "GET", "/health")[0] == 200
        status, headers, _ = ask(port, "GET", "/ready")
        assert (status, headers["retry-after"]) == (503, "2")
        assert search(port)[0] == 200  # the request waits
        assert ask(port, "GET", "/ready")[0] == 200
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(15)
        process.stdout.close()


# --- processes ---

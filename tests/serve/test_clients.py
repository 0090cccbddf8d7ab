"""A real server and its clients: slow ones, silent ones, and huge bodies."""

import http.client
import signal
import socket
import time
from contextlib import suppress

from processes import connections, resident, running, search, wait_for

from capr.serve.database import ServerDatabase


def test_a_body_of_a_hundred_megabytes(folder):
    with running(folder) as server:
        for path in ("/api/search", "/api/documents"):
            assert large(server.port, path, chunked=False) == 413
            assert large(server.port, path, chunked=True) == 413
        assert resident(server.pid) < 600_000_000
        assert search(server.port)[0] == 200


def large(port, path, chunked):
    """Send a request of 100 MB, which the server does not read to its end. Return its status."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        length = "Transfer-Encoding: chunked" if chunked else "Content-Length: 100000000"
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{length}\r\n\r\n"
        connection.sendall(head.encode())
        chunk = b"a" * 100_000
        try:
            for _ in range(1000):
                connection.sendall(b"%x\r\n%s\r\n" % (len(chunk), chunk) if chunked else chunk)
        except OSError:
            pass  # the server has closed the connection
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
        started = time.monotonic()
        assert search(server.port)[0] == 200  # other clients do not wait for them
        assert time.monotonic() - started < 5
        replies = [connection.recv(4096) for connection in slow[::2]]
        assert all(reply.startswith(b"HTTP/1.1 408") for reply in replies)
        assert all(
            connection.recv(4096) == b"" for connection in slow[1::2]
        )  # the clients that never complete their headers
        for connection in slow:
            connection.close()


def test_clients_that_read_nothing(folder):
    """The server closes the connections of clients that read no reply, whether they request many pages or few."""
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


def test_replies_come_without_delay(folder):
    with running(folder) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        durations = []
        for _ in range(20):
            started = time.perf_counter()
            connection.request("GET", "/health")
            connection.getresponse().read()
            durations.append(time.perf_counter() - started)
        connection.close()
        assert sorted(durations)[5] < 0.03  # a wait for TCP acknowledgement would take 40 ms


def test_a_client_that_follows_a_job_does_not_delay_the_end_of_the_server(folder, state):
    job = ServerDatabase(state.database).create_job("", False, 1)  # its documents never come
    with running(folder) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request("GET", f"/api/jobs/{job.id}/events")
        reply = connection.getresponse()
        assert b'"state": "waiting"' in reply.readline()
        started = time.monotonic()
        server.send_signal(signal.SIGTERM)
        reply.read()
        assert server.wait(20) == 0
        assert time.monotonic() - started < 10
        connection.close()

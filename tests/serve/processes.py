"""Run a real server in a process of its own, and send requests to it."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

START = """
import json, sys, time
from capr.search import Library
from capr.serve.launcher import serve
from capr.serve.settings import Settings
settings = Settings(**json.loads(sys.argv[1]))
sys.exit(serve(settings, lambda address: print(address, flush=True)))
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
    """Run a server on a free port, and stop it at the end."""
    settings = {"library": str(folder), "encoder": "none", "ranker": "none", "reader": "none", "port": 0, **settings}
    command = [sys.executable, "-c", before + START, json.dumps(settings)]
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
    raise AssertionError("the server is not ready after 15 seconds")


def metrics_of(port):
    return ask(port, "GET", "/metrics")[2].decode()


def children(pid):
    pids = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in pids if is_alive(int(child))]


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def resident(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def wait_for(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def connections(pid):
    """Return the number of open sockets of a process, its listening sockets included."""
    count = 0
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # it was closed meanwhile
            count += str(link.readlink()).startswith("socket:")
    return count

"""Measure the server under load: requests a second and latency of searches and questions, and of a bare FastAPI route.

python bench/serve.py [--passages 100000] [--workers 1] [--connections 16] [--seconds 15] [--work FOLDER]
python bench/serve.py --soak 10    # minutes of mixed load; fails if a request fails or memory grows

Without --passages, the library has the samples. Server and client run on one computer and share its cores. The client
is wrk (apt-get install wrk) if it is installed, else a small asyncio client. The server runs as for users, with access
control, all limits except the rate limit, and the audit trail with an fsync for each reply.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import urlopen

import corpus
from corpus import Times, say

from capr import samples
from capr.index import PASSAGES
from capr.index.embedded.engine import EmbeddedIndex
from capr.search import Library
from capr.search.batches import ENCODED as BATCH
from capr.search.models import load_encoder
from capr.serve.state import open_state
from capr.serve.tokens import TokenStore

KINDS = {  # the route, and the fields of the body besides the question
    "lexical": ("search", {"k": 10, "mode": "lexical"}),
    "hybrid": ("search", {"k": 10, "mode": "hybrid", "rerank": False}),
    "hybrid, re-ranked": ("search", {"k": 10, "mode": "hybrid", "rerank": True}),
    "ask, 20 passages": ("ask", {}),
}
ENCODED = 1000  # passages with real vectors; the vectors of others are mixtures
QUESTIONS = 50
WARM = 2.0  # seconds before the measurement
FLAT = 1.10  # the maximum ratio of the final memory to the memory after a third of the time
START = """
import json, sys
from capr.serve.launcher import serve
from capr.serve.settings import Settings
sys.exit(serve(Settings(**json.loads(sys.argv[1])), lambda address: print(address, flush=True)))
"""
BARE = """
import socket, sys
import uvicorn
from fastapi import FastAPI
app = FastAPI()
@app.post("/api/search")
async def search(body: dict):
    return {"hits": []}
listening = socket.create_server(("127.0.0.1", 0))
listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
print(f"http://127.0.0.1:{listening.getsockname()[1]}/", flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listening])
"""
LUA = """
local requests = {REQUESTS}
local i = 0
request = function()
  i = i % #requests + 1
  return wrk.format("POST", requests[i][1], {["Content-Type"] = "application/json", ["Authorization"] = "Bearer TOKEN"},
    requests[i][2])
end
done = function(summary, latency)
  io.write(string.format('RESULT {"requests": %d, "seconds": %f, "p50": %f, "p95": %f, "errors": %d}\\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(95) / 1e3,
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.status +
    summary.errors.timeout))
end
"""


class Request(NamedTuple):
    """A request to send."""

    path: str
    body: str


class Load(NamedTuple):
    """The measurements of a client; latencies in milliseconds."""

    requests: int
    seconds: float
    p50: float
    p95: float
    errors: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=0, help="size of a synthetic library; 0 for the samples")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--soak", type=float, default=0.0, help="minutes of mixed load")
    parser.add_argument("--work", type=Path, help="where to keep the libraries, to use them again")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        library = build(arguments.work or Path(folder), arguments.passages)
        token, _ = TokenStore(open_state(library).tokens).create("bench", "reader")
        queries = questions(arguments.passages)
        settings = {
            "library": str(library),
            "port": 0,
            "workers": arguments.workers,
            "threads": arguments.threads,
            "rate": 0,
            "max_waiting": 4 * arguments.connections,
            "audit": str(Path(folder) / "audit"),
            "waiting_seconds": 120,
        }
        if arguments.soak:
            soak(settings, token, queries, arguments.connections, arguments.soak * 60)
        else:
            measure(settings, token, queries, arguments.connections, arguments.seconds)


def measure(settings: dict, token: str, queries: Sequence[str], connections: int, seconds: float) -> None:
    """Print a line for each kind of search, and one for a route that does nothing."""
    with Library(settings["library"]) as library:
        stats = library.stats()
    client = "wrk" if shutil.which("wrk") else "asyncio"
    print(
        f"{stats.passages:,} passages, {settings['workers']} worker(s), {connections} connections, client: {client}\n"
    )
    print("| route | requests/s | p50 ms | p95 ms | errors |\n|---|---|---|---|---|")
    with running(BARE, {}) as (address, _):
        report("bare FastAPI route", load(address, token, requests_of(queries, "search", {}), connections, seconds))
    start = time.perf_counter()
    with running(START, settings) as (address, process):
        listening = time.perf_counter() - start
        wait(address)
        ready = time.perf_counter() - start
        for name, (route, fields) in KINDS.items():
            report(name, load(address, token, requests_of(queries, route, fields), connections, seconds))
        memory = sum(resident(pid) for pid in family(process.pid))
    print(f"\nListening after {listening:.1f} s, ready after {ready:.1f} s, {memory / 1e6:,.0f} MB in the end.")


def soak(settings: dict, token: str, queries: Sequence[str], connections: int, seconds: float) -> None:
    """Send mixed load for a long time, and exit with an error if memory grows or a request fails."""
    mixed = [request for kind in KINDS.values() for request in requests_of(queries, *kind)]
    with running(START, settings) as (address, process):
        wait(address)
        memory: list[float] = []
        failed = requests = 0
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            part = load(address, token, mixed, connections, min(20.0, seconds), warm=0.0)
            failed, requests = failed + part.errors, requests + part.requests
            memory.append(sum(resident(pid) for pid in family(process.pid)) / 1e6)
            say(f"{requests:,} requests, {failed} failed, {memory[-1]:,.0f} MB")
    early = max(memory[: max(1, len(memory) // 3)])
    growth = f"memory {early:,.0f} MB, then {memory[-1]:,.0f} MB"
    print(f"{requests:,} requests in {seconds / 60:g} minutes, {failed} failed; {growth}")
    if failed or memory[-1] > FLAT * early:
        sys.exit("requests failed, or memory grew")


def report(name: str, result: Load) -> None:
    rate = result.requests / result.seconds
    rounded = f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"
    print(f"| {name} | {rounded} | {result.p50:,.1f} | {result.p95:,.1f} | {result.errors} |", flush=True)


# --- libraries ---


def build(work: Path, passages: int) -> Path:
    """Build a library of the samples, or of passages made of their sentences; reuse one from an earlier run."""
    folder = work / (f"library-{passages}" if passages else "library-samples")
    if (folder / "library.db").is_file():
        return folder
    say(f"building {folder.name}")
    if not passages:
        with Library(folder) as library:
            library.add(samples.documents())
        return folder
    encoder = load_encoder("capr")
    assert encoder is not None
    rows = list(islice(corpus.rows(None, None), passages))
    first = rows[:ENCODED]
    vectors = corpus.real_vectors([], first, encoder.passages([row.text for row in first]))
    index = EmbeddedIndex(folder, create=True)
    with index.writing() as writer:
        writer.set_encoder(encoder.identity)
        writer.commit()
        waiting = 0
        for document, positions in corpus.documents(rows, passages, Times()):
            writer.add(replace(document, vectors={PASSAGES: list(vectors.of(positions))}))
            waiting += len(positions)
            if waiting >= 20 * BATCH:
                writer.commit()
                waiting = 0
        writer.commit()
    index.close()
    return folder


def questions(passages: int) -> list[str]:
    if passages:
        return corpus.questions(None, None, QUESTIONS)
    return [sample.question for sample in samples.questions() if sample.question][:QUESTIONS]


def requests_of(queries: Sequence[str], route: str, fields: dict) -> list[Request]:
    name = "question" if route == "ask" else "query"
    return [Request(f"/api/{route}", json.dumps({name: query, **fields})) for query in queries]


# --- load ---


def load(
    address: str, token: str, requests: Sequence[Request], connections: int, seconds: float, warm: float = WARM
) -> Load:
    """Measure connections that each send one request after the other."""
    client = _load_with_wrk if shutil.which("wrk") else _load_with_asyncio
    if warm:
        client(address, token, requests, connections, warm)
    return client(address, token, requests, connections, seconds)


def _load_with_wrk(address: str, token: str, requests: Sequence[Request], connections: int, seconds: float) -> Load:
    table = ",".join(f'{{"{request.path}", [==[{request.body}]==]}}' for request in requests)
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(LUA.replace("REQUESTS", table).replace("TOKEN", token))
        script.flush()
        command = [
            "wrk",
            "-t1",
            f"-c{connections}",
            f"-d{max(1, round(seconds))}s",
            "--timeout",
            "60s",
            "-s",
            script.name,
            address,
        ]
        process = subprocess.run(command, capture_output=True, text=True, check=True)
    result = next(line for line in process.stdout.splitlines() if line.startswith("RESULT"))
    return Load(**json.loads(result.removeprefix("RESULT ")))


def _load_with_asyncio(address: str, token: str, requests: Sequence[Request], connections: int, seconds: float) -> Load:
    return asyncio.run(_send(urlsplit(address).port or 80, token, requests, connections, seconds))


async def _send(port: int, token: str, requests: Sequence[Request], connections: int, seconds: float) -> Load:
    times: list[float] = []
    errors = 0
    deadline = time.monotonic() + seconds

    async def connection(first: int) -> None:
        nonlocal errors
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        i = first
        while time.monotonic() < deadline:
            path, text = requests[i % len(requests)]
            body = text.encode()
            i += connections
            head = (
                f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            start = time.perf_counter()
            writer.write(head.encode() + body)
            reply = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            await reader.readexactly(int(reply.split("content-length:")[1].split()[0]))
            times.append(time.perf_counter() - start)
            errors += not reply.startswith("http/1.1 200")
        writer.close()

    start = time.monotonic()
    await asyncio.gather(*(connection(number) for number in range(connections)))
    elapsed = time.monotonic() - start
    times.sort()
    p50, p95 = times[len(times) // 2], times[int(0.95 * len(times))]
    return Load(len(times), elapsed, 1000 * p50, 1000 * p95, errors)


# --- processes ---


@contextmanager
def running(program: str, settings: dict) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run a server in a new process; yield its address and the process."""
    command = [sys.executable, "-c", program, json.dumps(settings)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def wait(address: str) -> None:
    """Wait until the server is ready."""
    for _ in range(1200):
        try:
            with urlopen(f"{address}ready", timeout=10) as reply:
                if reply.status == 200:
                    return
        except OSError:
            time.sleep(0.05)
    raise SystemExit("the server did not become ready")


def family(pid: int) -> list[int]:
    """Return the ids of a process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


def resident(pid: int) -> float:
    """Return the resident memory of a process in bytes."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096.0
    except OSError:
        return 0.0


if __name__ == "__main__":
    main()

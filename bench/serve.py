"""The server under load: requests a second and latency of searches and questions, beside a bare FastAPI route.

python bench/serve.py [--passages 100000] [--workers 1] [--connections 16] [--seconds 15] [--work FOLDER]
python bench/serve.py --soak 10    # minutes of mixed load: memory has to stay flat, and nothing may fail

Without --passages, the samples are searched. All runs on one machine: server and client share its cores. The client is
wrk (apt-get install wrk) if it is there, else a small one of asyncio's. Everything is on that is on for users: access,
limits but for the rate, and the audit trail with an fsync for each reply.
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
from capr.index import EmbeddedIndex
from capr.search import Library
from capr.search.library import BATCH
from capr.search.models import load_encoder
from capr.serve.tokens import Tokens

KINDS = {  # where to, and what is sent along with a question
    "lexical": ("search", {"k": 10, "mode": "lexical"}),
    "hybrid": ("search", {"k": 10, "mode": "hybrid", "rerank": False}),
    "hybrid, re-ranked": ("search", {"k": 10, "mode": "hybrid", "rerank": True}),
    "ask, 20 passages": ("ask", {}),
}
ENCODED = 1000  # passages whose vectors are real; those of others are mixtures
QUESTIONS = 50
WARM = 2.0  # seconds before anything is counted
FLAT = 1.10  # times the memory after a third of the time that it may have in the end
START = """
import json, sys
from capr.serve.run import serve
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
local sent = {SENT}
local place = 0
request = function()
  place = place % #sent + 1
  return wrk.format("POST", sent[place][1], {["Content-Type"] = "application/json", ["Authorization"] = "Bearer TOKEN"},
    sent[place][2])
end
done = function(summary, latency)
  io.write(string.format('RESULT {"requests": %d, "seconds": %f, "p50": %f, "p95": %f, "errors": %d}\\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(95) / 1e3,
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.status +
    summary.errors.timeout))
end
"""


class Sent(NamedTuple):
    """A request."""

    path: str
    body: str


class Load(NamedTuple):
    """What a client measured; latencies in milliseconds."""

    requests: int
    seconds: float
    p50: float
    p95: float
    errors: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=0, help="of a library that is made up; the samples if 0")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--soak", type=float, default=0.0, help="minutes")
    parser.add_argument("--work", type=Path, help="where libraries are kept")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        library = built(given.work or Path(folder), given.passages)
        token, _ = Tokens(library).create("bench", "reader")
        asked = questions(given.passages)
        settings = {
            "library": str(library), "port": 0, "workers": given.workers, "threads": given.threads, "rate": 0,
            "waiting": 4 * given.connections, "audit": str(Path(folder) / "audit"), "waiting_seconds": 120,
        }  # fmt: skip
        if given.soak:
            soak(settings, token, asked, given.connections, given.soak * 60)
        else:
            measure(settings, token, asked, given.connections, given.seconds)


def measure(settings: dict, token: str, asked: Sequence[str], connections: int, seconds: float) -> None:
    """A line for each kind of search, and one for a route that does nothing."""
    with Library(settings["library"]) as library:
        stats = library.stats()
    client = "wrk" if shutil.which("wrk") else "asyncio"
    print(
        f"{stats.passages:,} passages, {settings['workers']} worker(s), {connections} connections, client: {client}\n"
    )
    print("| route | requests/s | p50 ms | p95 ms | errors |\n|---|---|---|---|---|")
    with running(BARE, {}) as (address, _):
        told("bare FastAPI route", load(address, token, sent(asked, "search", {}), connections, seconds))
    begun = time.perf_counter()
    with running(START, settings) as (address, process):
        listening = time.perf_counter() - begun
        wait(address)
        ready = time.perf_counter() - begun
        for name, (route, body) in KINDS.items():
            told(name, load(address, token, sent(asked, route, body), connections, seconds))
        memory = sum(resident(pid) for pid in family(process.pid))
    print(f"\nListening after {listening:.1f} s, ready after {ready:.1f} s, {memory / 1e6:,.0f} MB in the end.")


def soak(settings: dict, token: str, asked: Sequence[str], connections: int, seconds: float) -> None:
    """Mixed load for long; complains if memory grows or a request fails."""
    mixed = [one for kind in KINDS.values() for one in sent(asked, *kind)]
    with running(START, settings) as (address, process):
        wait(address)
        seen: list[float] = []
        failed = requests = 0
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            one = load(address, token, mixed, connections, min(20.0, seconds), warm=0.0)
            failed, requests = failed + one.errors, requests + one.requests
            seen.append(sum(resident(pid) for pid in family(process.pid)) / 1e6)
            say(f"{requests:,} requests, {failed} failed, {seen[-1]:,.0f} MB")
    early = max(seen[: max(1, len(seen) // 3)])
    memory = f"memory {early:,.0f} MB, then {seen[-1]:,.0f} MB"
    print(f"{requests:,} requests in {seconds / 60:g} minutes, {failed} failed; {memory}")
    if failed or seen[-1] > FLAT * early:
        sys.exit("requests failed, or memory grew")


def told(name: str, found: Load) -> None:
    rate = found.requests / found.seconds
    shown = f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"
    print(f"| {name} | {shown} | {found.p50:,.1f} | {found.p95:,.1f} | {found.errors} |", flush=True)


# --- libraries ---


def built(work: Path, passages: int) -> Path:
    """The samples, or so many passages that are made of their sentences; kept for the next time."""
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
    some = rows[:ENCODED]
    vectors = corpus.real_vectors([], some, encoder.passages([row.text for row in some]))
    index = EmbeddedIndex(folder, create=True)
    with index.writing() as writer:
        writer.set_encoder(encoder.identity)
        writer.commit()
        waiting = 0
        for one, places in corpus.documents(rows, passages, Times()):
            writer.add(replace(one, vectors=list(vectors.of(places))))
            waiting += len(places)
            if waiting >= 20 * BATCH:
                writer.commit()
                waiting = 0
        writer.commit()
    index.close()
    return folder


def questions(passages: int) -> list[str]:
    if passages:
        return corpus.questions(None, None, QUESTIONS)
    return [one.question for one in samples.questions() if one.question][:QUESTIONS]


def sent(asked: Sequence[str], route: str, more: dict) -> list[Sent]:
    name = "question" if route == "ask" else "query"
    return [Sent(f"/api/{route}", json.dumps({name: question, **more})) for question in asked]


# --- load ---


def load(
    address: str, token: str, requests: Sequence[Sent], connections: int, seconds: float, warm: float = WARM
) -> Load:
    """What so many connections measure that ask one request after the other."""
    client = _wrk if shutil.which("wrk") else _own
    if warm:
        client(address, token, requests, connections, warm)
    return client(address, token, requests, connections, seconds)


def _wrk(address: str, token: str, requests: Sequence[Sent], connections: int, seconds: float) -> Load:
    listed = ",".join(f'{{"{one.path}", [==[{one.body}]==]}}' for one in requests)
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(LUA.replace("SENT", listed).replace("TOKEN", token))
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
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = next(line for line in done.stdout.splitlines() if line.startswith("RESULT"))
    return Load(**json.loads(result.removeprefix("RESULT ")))


def _own(address: str, token: str, requests: Sequence[Sent], connections: int, seconds: float) -> Load:
    return asyncio.run(_asked(urlsplit(address).port or 80, token, requests, connections, seconds))


async def _asked(port: int, token: str, requests: Sequence[Sent], connections: int, seconds: float) -> Load:
    took: list[float] = []
    errors = 0
    until = time.monotonic() + seconds

    async def connection(first: int) -> None:
        nonlocal errors
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        place = first
        while time.monotonic() < until:
            path, text = requests[place % len(requests)]
            body = text.encode()
            place += connections
            head = (
                f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            begun = time.perf_counter()
            writer.write(head.encode() + body)
            reply = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            await reader.readexactly(int(reply.split("content-length:")[1].split()[0]))
            took.append(time.perf_counter() - begun)
            errors += not reply.startswith("http/1.1 200")
        writer.close()

    begun = time.monotonic()
    await asyncio.gather(*(connection(number) for number in range(connections)))
    took.sort()
    return Load(
        len(took), time.monotonic() - begun, 1000 * took[len(took) // 2], 1000 * took[int(0.95 * len(took))], errors
    )


# --- processes ---


@contextmanager
def running(program: str, settings: dict) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server of its own; its address."""
    command = [sys.executable, "-c", program, json.dumps(settings)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def wait(address: str) -> None:
    """Until it is ready."""
    for _ in range(1200):
        try:
            with urlopen(f"{address}ready", timeout=10) as reply:
                if reply.status == 200:
                    return
        except OSError:
            time.sleep(0.05)
    raise SystemExit("the server did not become ready")


def family(pid: int) -> list[int]:
    """A process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


def resident(pid: int) -> float:
    """Bytes of memory of a process."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096.0
    except OSError:
        return 0.0


if __name__ == "__main__":
    main()

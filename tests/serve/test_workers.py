"""The worker processes of a real server: a killed worker is replaced, and no worker outlives the server."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial

from processes import START, ask, children, is_alive, metrics_of, running, search, wait_for


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
        assert 55 <= count <= 69  # the counts of the last second may be missing
        os.kill(workers[0], signal.SIGKILL)  # another worker replaces it, and clients notice nothing
        time.sleep(0.5)
        assert search(server.port)[0] == 200
        assert wait_for(lambda: len(children(server.pid)) == 3 and workers[0] not in children(server.pid))
        job = json.loads(
            ask(server.port, "POST", "/api/documents", {"documents": [{"id": "w", "text": "Worker."}]})[2]
        )["job"]
        assert wait_for(lambda: json.loads(ask(server.port, "GET", f"/api/jobs/{job}")[2])["state"] == "done")
        assert all(json.loads(search(server.port, "worker")[2])["hits"] for _ in range(9))  # whichever worker answers
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


def test_a_worker_killed_soon_after_its_start_is_replaced(folder):
    with running(folder, workers=2) as server:
        for _ in range(2):
            before = set(children(server.pid))
            os.kill(min(before), signal.SIGKILL)  # as a machine without free memory does; the other worker goes on
            assert wait_for(partial(is_replaced, server.pid, before))
            assert search(server.port)[0] == 200


def is_replaced(pid, before):
    """Return whether a new process replaces the first of two workers, and the second still runs."""
    current = set(children(pid))
    return len(current) == 2 and current & before == {max(before)}


def test_repeated_kills_of_workers_end_the_server(folder):
    with running(folder, workers=2) as server:
        for _ in range(20):
            for worker in children(server.pid):
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
            if server.poll() is not None:
                break
            time.sleep(0.25)
        assert server.wait(20) != 0


def test_workers_that_cannot_start_report_the_error(folder):
    settings = {"library": str(folder), "deidentify": "no:Such", "workers": 2, "port": 0}
    command = [sys.executable, "-c", START, json.dumps(settings)]
    process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert process.returncode != 0
    assert "no:Such" in process.stderr
    assert "Traceback" not in process.stderr

"""Fixtures: processes to kill, and libraries to damage."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

import pytest

WORKER = Path(__file__).with_name("worker.py")
sys.path.insert(0, str(WORKER.parent))

from damages import QUERIES, rows  # noqa: E402


@pytest.fixture(scope="session")
def faults():
    """The number of kills."""
    return int(os.environ.get("CAPR_FAULTS", "10"))


@pytest.fixture(scope="session")
def worker():
    """The module `worker`."""
    spec = importlib.util.spec_from_file_location("faults_worker", WORKER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Child:
    """A process that runs a job."""

    def __init__(self, starter, pid, log):
        self._starter, self.pid, self._log = starter, pid, log
        self.code = None

    def wait(self, timeout=120):
        """Wait for the exit code; return None if the process has not ended in time."""
        deadline = time.monotonic() + timeout
        while self.code is None:
            self.code = self._starter.ask({"poll": self.pid})
            if self.code is None:
                if time.monotonic() > deadline:
                    return None
                time.sleep(0.005)
        return self.code

    def kill(self):
        """Kill the process if it is running; return its exit code."""
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)  # nothing has waited for it, so no other process has its id
        return self.wait()

    @property
    def lines(self):
        """The lines that the process has logged."""
        lines = self._log.read_bytes().split(b"\n")[:-1] if self._log.exists() else []
        return [json.loads(line) for line in lines]

    def finish(self, timeout=120):
        """Wait until the process ends without an error; return the lines that it logged."""
        code = self.wait(timeout)
        if code is None:
            self.kill()
        errors = Path(f"{self._log}.stderr")
        stderr = errors.read_text()[-3000:] if errors.exists() else ""
        crashed = [line["crashed"] for line in self.lines if set(line) == {"crashed"}]
        assert code == 0, f"ended with {code}\n{''.join(crashed)}\n{stderr}"
        return self.lines


class Starter:
    """Starts processes quickly, as forks of one process."""

    def __init__(self, process, folder):
        self._process, self._folder, self._numbers = process, folder, count()

    def ask(self, request):
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, job, **arguments):
        log = self._folder / f"{next(self._numbers)}.log"
        arguments = {name: str(value) if isinstance(value, Path) else value for name, value in arguments.items()}
        return Child(self, self.ask({"job": job, "log": str(log), **arguments}), log)


@pytest.fixture(scope="session")
def starter(tmp_path_factory):
    command = [sys.executable, str(WORKER)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        yield Starter(process, tmp_path_factory.mktemp("logs"))
        process.stdin.close()


@pytest.fixture(scope="session")
def sound(worker, tmp_path_factory):
    """An intact library with vectors of passages and sentences; no test writes to it."""
    path = tmp_path_factory.mktemp("sound") / "library"
    with worker.open_library(path, worker.FakeEncoder(), worker.FakeDiscourse()) as library:
        library.add([worker.make(f"d{number}", 1) for number in range(12)])
    return path


@pytest.fixture
def memory():
    """A folder in memory, if the system has one; like a disk, it survives a killed process."""
    shared_memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared_memory if os.access(shared_memory, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture
def copy(sound, memory):
    """A copy of the intact library, which the test may damage."""
    return Path(shutil.copytree(sound, memory / "library"))


@pytest.fixture
def open_folder():
    """A folder that every user can read."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    for path in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        path.chmod(0o755)
    shutil.rmtree(folder)


@pytest.fixture
def warnings(worker):
    """The warnings that `capr` logs."""
    handler = worker.WarningLog()
    yield handler.messages
    worker.logging.getLogger("capr").removeHandler(handler)


@pytest.fixture(scope="module")
def expected(worker, sound):
    """The hits of the queries in the intact library."""
    with worker.open_library(sound) as library:
        hits = [rows(library.search(query, 5, mode=mode)) for query, mode in QUERIES]
    assert all(hits)
    return hits

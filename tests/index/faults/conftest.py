"""Processes to kill, and libraries to damage."""

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


@pytest.fixture(scope="session")
def faults():
    """How hard to try: kills in all."""
    return int(os.environ.get("CAPR_FAULTS", "10"))


@pytest.fixture(scope="session")
def worker():
    """The module `worker`."""
    spec = importlib.util.spec_from_file_location("faults_worker", WORKER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Child:
    """A process that does a job."""

    def __init__(self, starter, pid, log):
        self._starter, self.pid, self._log = starter, pid, log
        self.code = None

    def wait(self, timeout=120):
        """Its exit code; None if it has not ended in time."""
        until = time.monotonic() + timeout
        while self.code is None:
            self.code = self._starter.ask({"poll": self.pid})
            if self.code is None:
                if time.monotonic() > until:
                    return None
                time.sleep(0.005)
        return self.code

    def kill(self):
        """Ends it at once, if it has not ended yet."""
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)  # nobody has waited for it, so that the number is still its own
        return self.wait()

    @property
    def told(self):
        """What it has said."""
        lines = self._log.read_bytes().split(b"\n")[:-1] if self._log.exists() else []
        return [json.loads(line) for line in lines]

    def finished(self, timeout=120):
        """What it has said when it has ended by itself and well."""
        code = self.wait(timeout)
        if code is None:
            self.kill()
        errors = Path(f"{self._log}.stderr")
        said = errors.read_text()[-3000:] if errors.exists() else ""
        crashed = [line["crashed"] for line in self.told if set(line) == {"crashed"}]
        assert code == 0, f"ended with {code}\n{''.join(crashed)}\n{said}"
        return self.told


class Starter:
    """Starts processes quickly."""

    def __init__(self, process, folder):
        self._process, self._folder, self._numbers = process, folder, count()

    def ask(self, given):
        self._process.stdin.write(json.dumps(given) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, job, **given):
        log = self._folder / f"{next(self._numbers)}.log"
        given = {name: str(value) if isinstance(value, Path) else value for name, value in given.items()}
        return Child(self, self.ask({"job": job, "log": str(log), **given}), log)


@pytest.fixture(scope="session")
def starter(tmp_path_factory):
    command = [sys.executable, str(WORKER)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        yield Starter(process, tmp_path_factory.mktemp("logs"))
        process.stdin.close()


@pytest.fixture(scope="session")
def sound(worker, tmp_path_factory):
    """A library with vectors of passages and sentences in which nothing is wrong; nobody writes there."""
    path = tmp_path_factory.mktemp("sound") / "library"
    with worker.opened(path, worker.Fake(), worker.FakeDiscourse()) as library:
        library.add([worker.make(f"d{number}", 1) for number in range(12)])
    return path


@pytest.fixture
def memory():
    """A folder in memory, where there is one: whoever is killed, other than a machine, loses nothing there either."""
    place = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=place if os.access(place, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture
def copy(sound, memory):
    """A library of one's own."""
    return Path(shutil.copytree(sound, memory / "library"))


@pytest.fixture
def open_folder():
    """A folder that every user may enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    for path in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        path.chmod(0o755)
    shutil.rmtree(folder)


@pytest.fixture
def warned(worker):
    """What `capr` warns of."""
    handler = worker.Warned()
    yield handler.messages
    worker.logging.getLogger("capr").removeHandler(handler)

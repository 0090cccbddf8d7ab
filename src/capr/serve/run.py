"""Runs the server: one process, or several that share the place at which they listen."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from types import FrameType

from capr.documents import CaprError
from capr.serve.access import is_loopback
from capr.serve.settings import Settings
from capr.serve.tokens import Tokens
from capr.serve.worker import run

BACKLOG = 512  # connections that may wait to be taken
LOOK = 0.2  # seconds after which the workers are looked after
SHORT = 5.0  # seconds; a worker that ends by itself so soon after it began will not do better the next time
KILLED = 5  # times that workers may be killed so soon, one after the other, before the server gives up
PATIENCE = 15.0  # seconds that workers may take to end, after their grace


def check(settings: Settings) -> None:
    """Complains of settings under which nothing should be served."""
    tokens = Tokens(settings.folder).all()
    if not is_loopback(settings.host) and not tokens and not settings.require_token:
        fix = f"make a token first (capr token create {settings.library} --name NAME), or leave --host out"
        fact = f"everybody who can reach {settings.host} could read the library, which has no token"
        raise CaprError(f"{fact}. Fix: {fix}.")
    if settings.audit_queries not in ("keep", "hash"):
        raise CaprError(f"queries cannot be audited as {settings.audit_queries!r}. Fix: use keep or hash.")


def serve(settings: Settings, told: Callable[[str], None]) -> int:
    """Serves until somebody stops it; gives the exit code.

    Args:
        settings: how.
        told: is told the address once it is taken.
    """
    check(settings)
    folder = tempfile.mkdtemp(prefix="capr-serve-")
    try:
        settings = replace(settings, run=folder)
        listening = _listening(settings)
        host, port = listening.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
        if settings.workers == 1:
            run(settings, listening, lambda: told(address))
            return 0
        settings.keep()
        told(address)
        return Workers(settings.workers, listening).run(settings.grace + PATIENCE)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Workers:
    """Processes that listen at the same place. One that dies is begun again; when this one dies, so do they."""

    def __init__(self, count: int, listening: socket.socket) -> None:
        self._listening, self._stopping, self._killed = listening, False, 0
        self._alive, self._end = os.pipe()  # whoever holds the other end learns when this process is no more
        self._workers = [self._begin() for _ in range(count)]

    def run(self, patience: float) -> int:
        """Until a signal to stop comes, and then until all have ended what they were at."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        while not self._stopping:
            time.sleep(LOOK)
            for place, (worker, begun) in enumerate(self._workers):
                if worker.poll() is None or self._stopping:
                    continue
                soon = time.monotonic() < begun + SHORT
                self._killed = self._killed + 1 if soon else 0
                if soon and (worker.returncode >= 0 or self._killed > KILLED):
                    self._stop(signal.SIGTERM, None)  # its settings are wrong, and it has said why; or it cannot live
                    break
                print(f"worker {worker.pid} ended with {worker.returncode}; it is begun again", file=sys.stderr)
                self._workers[place] = self._begin()
        until = time.monotonic() + patience
        for worker, _ in self._workers:
            try:
                worker.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.kill()
        # One that had only just begun dies of the signal that the others heed.
        codes = [int(worker.returncode or 0) for worker, _ in self._workers]
        return max(0 if code == -signal.SIGTERM else abs(code) for code in codes)

    def _begin(self) -> tuple[subprocess.Popen[bytes], float]:
        inherited = (self._listening.fileno(), self._alive)
        command = [sys.executable, "-m", "capr.serve.worker", *map(str, inherited)]
        # A Ctrl-C in the terminal is for this process, which then tells the others.
        return subprocess.Popen(command, pass_fds=inherited, start_new_session=True), time.monotonic()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True
        for worker, _ in self._workers:
            if worker.poll() is None:
                worker.terminate()


def _listening(settings: Settings) -> socket.socket:
    """A socket that listens, so that nobody who was told the address is refused while the workers start."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # A reply is written in two pieces; without this, the second waits 40 ms for the client to confirm the first.
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        found.bind((settings.host.strip("[]"), settings.port))
        found.listen(BACKLOG)
    except OSError as error:
        found.close()
        fix = "name another one (--port; 0 for any that is free)"
        fact = f"{settings.host}, port {settings.port}, cannot be listened at ({error.strerror or error})"
        raise CaprError(f"{fact}. Fix: {fix}.") from error
    return found

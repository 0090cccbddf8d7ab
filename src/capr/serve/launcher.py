"""Run the server: one process, or several that share a socket."""

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
from capr.search.models import Models
from capr.serve.access import is_loopback
from capr.serve.settings import Settings
from capr.serve.tokens import TokenStore
from capr.serve.worker import run

BACKLOG = 512  # connections that may wait to be accepted
POLL = 0.2  # seconds between two checks of the workers
EARLY = 5.0  # seconds; a worker that exits so soon after its start would exit again
MAX_KILLS = 5  # early kills of workers in a row, before the server gives up
SHUTDOWN_SECONDS = 15.0  # for the workers to end, after their grace


def check(settings: Settings) -> None:
    """Raise an error for settings that are not safe or not valid. The models are not loaded."""
    models = Models(settings.library, settings.encoder, settings.ranker, settings.discourse, settings.reader)
    models.check_folders()
    tokens = TokenStore(settings.open_state().tokens).all()
    if not is_loopback(settings.host) and not tokens and not settings.require_token:
        fix = f"create a token first (capr token create {settings.library} --name NAME), or leave --host out"
        fact = f"anybody who can reach {settings.host} could read the library, which has no token"
        raise CaprError(f"{fact}. Fix: {fix}.")
    if settings.audit_queries not in ("keep", "hash"):
        raise CaprError(f"--audit-queries does not accept {settings.audit_queries!r}. Fix: use keep or hash.")


def serve(settings: Settings, announce: Callable[[str], None]) -> int:
    """Serve until a signal stops the server. Return the exit code.

    Args:
        settings: the settings of the server.
        announce: called with the address once the server listens.
    """
    check(settings)
    folder = tempfile.mkdtemp(prefix="capr-serve-")
    try:
        settings = replace(settings, run=folder)
        listener = _listen(settings)
        host, port = listener.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
        if settings.workers == 1:
            run(settings, listener, lambda: announce(address))
            return 0
        settings.save_to_environment()
        announce(address)
        return Workers(settings.workers, listener).run(settings.grace + SHUTDOWN_SECONDS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Workers:
    """Worker processes that share a socket. A worker that dies is replaced; all end when this process dies."""

    def __init__(self, count: int, listener: socket.socket) -> None:
        self._listener, self._stopping, self._kills = listener, False, 0
        self._read_end, self._write_end = os.pipe()  # workers read from the pipe, which closes when this process dies
        self._workers = [self._start() for _ in range(count)]

    def run(self, seconds: float) -> int:
        """Supervise the workers until a signal comes, then wait for them to end. Return the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        while not self._stopping:
            time.sleep(POLL)
            for index, (worker, started) in enumerate(self._workers):
                if worker.poll() is None or self._stopping:
                    continue
                is_early = time.monotonic() < started + EARLY
                self._kills = self._kills + 1 if is_early else 0
                if is_early and (worker.returncode >= 0 or self._kills > MAX_KILLS):
                    self._stop(signal.SIGTERM, None)  # it has reported an error, or something kills every worker
                    break
                print(f"worker {worker.pid} ended with {worker.returncode}; another replaces it", file=sys.stderr)
                self._workers[index] = self._start()
        deadline = time.monotonic() + seconds
        for worker, _ in self._workers:
            try:
                worker.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.kill()
        # A worker that has just started does not handle the signal yet, and dies of it.
        codes = [int(worker.returncode or 0) for worker, _ in self._workers]
        return max(0 if code == -signal.SIGTERM else abs(code) for code in codes)

    def _start(self) -> tuple[subprocess.Popen[bytes], float]:
        inherited = (self._listener.fileno(), self._read_end)
        command = [sys.executable, "-m", "capr.serve.worker", *map(str, inherited)]
        # Ctrl-C in the terminal reaches this process alone, which then stops the workers.
        return subprocess.Popen(command, pass_fds=inherited, start_new_session=True), time.monotonic()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True
        for worker, _ in self._workers:
            if worker.poll() is None:
                worker.terminate()


def _listen(settings: Settings) -> socket.socket:
    """Return a listening socket, so that connections can wait while the workers start."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # A reply is sent in two writes; without this, the second waits 40 ms for the client to confirm the first.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((settings.host.strip("[]"), settings.port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        fix = "name another one (--port; 0 for any that is free)"
        host = f"[{settings.host.strip('[]')}]" if ":" in settings.host else settings.host
        fact = f"cannot listen on {host}:{settings.port} ({error.strerror or error})"
        raise CaprError(f"{fact}. Fix: {fix}.") from error
    return listener

"""A worker: one process that serves, at a place at which others may listen, too."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from capr.documents import CaprError
from capr.serve.application import application
from capr.serve.patience import impatient
from capr.serve.settings import Settings

IDLE = 15  # seconds for which a connection is kept between two requests


class Quiet(uvicorn.Server):
    """uvicorn's server, which tells when it takes requests, and ends as if nothing were when it is stopped."""

    def __init__(self, config: uvicorn.Config, told: Callable[[], None], stopping: asyncio.Event) -> None:
        super().__init__(config)
        self._told, self._stopping = told, stopping

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begins to stop; replies that would go on for long end, too."""
        super().handle_exit(sig, frame)
        self._loop.call_soon_threadsafe(self._stopping.set)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._told()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A signal stops the server, and not the process: what comes after has to be done, too."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def run(settings: Settings, listening: socket.socket, told: Callable[[], None] = lambda: None) -> None:
    """Serves until a signal to stop comes, and ends what it is at."""
    app = application(settings)
    config = uvicorn.Config(
        app, log_level="warning", lifespan="on", ws="none", server_header=False, timeout_keep_alive=IDLE,
        access_log=False,  # the audit trail says more, and addresses hold the ids of documents
        timeout_graceful_shutdown=max(1, round(settings.grace)),
    )  # fmt: skip
    config.load()
    config.http_protocol_class = impatient(config.http_protocol_class, settings.body_seconds)
    asyncio.run(Quiet(config, told, app.server.stopping).serve(sockets=[listening]))


def main() -> None:
    """`python -m capr.serve.worker SOCKET PIPE`: as `capr serve --workers` begins it."""
    listening, alive = (int(number) for number in sys.argv[1:3])

    def watch() -> None:
        os.read(alive, 1)  # until the process that began this one is no more
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
    try:
        run(Settings.kept(), socket.socket(fileno=listening))
    except CaprError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()

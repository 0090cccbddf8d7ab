"""A worker: one process that serves requests, on a socket that other workers may share."""

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
from capr.serve.idle_timeout import with_idle_timeout
from capr.serve.settings import Settings

IDLE = 15  # seconds that a connection may stay open between two requests


class GracefulServer(uvicorn.Server):
    """uvicorn's server with a callback when it is ready, and a normal exit when a signal stops it."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None], stopping: asyncio.Event) -> None:
        super().__init__(config)
        self._on_ready, self._stopping = on_ready, stopping

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop, and end the streams of job events."""
        super().handle_exit(sig, frame)
        self._loop.call_soon_threadsafe(self._stopping.set)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals without raising them again, so that the process can finish its work."""
        handlers = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)


def run(settings: Settings, listener: socket.socket, on_ready: Callable[[], None] = lambda: None) -> None:
    """Serve until a signal stops the server, and finish the running requests."""
    app = application(settings)
    config = uvicorn.Config(
        app,
        log_level="warning",
        lifespan="on",
        ws="none",
        server_header=False,
        timeout_keep_alive=IDLE,
        access_log=False,  # the audit trail has more, and addresses contain ids of documents
        timeout_graceful_shutdown=max(1, round(settings.grace)),
    )
    config.load()
    config.http_protocol_class = with_idle_timeout(config.http_protocol_class, settings.body_seconds)
    asyncio.run(GracefulServer(config, on_ready, app.server.stopping).serve(sockets=[listener]))


def main() -> None:
    """Run `python -m capr.serve.worker SOCKET PIPE`, as `capr serve --workers` starts it."""
    listener, pipe = (int(number) for number in sys.argv[1:3])

    def watch() -> None:
        os.read(pipe, 1)  # returns when the parent process has ended
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
    try:
        run(Settings.from_environment(), socket.socket(fileno=listener))
    except CaprError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()

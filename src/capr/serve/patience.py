"""Patience: a connection on which nothing moves for some seconds is closed, so that idle ones do not pile up."""

from __future__ import annotations

import asyncio
from typing import Any


def impatient(kind: type[asyncio.Protocol], seconds: float) -> type[asyncio.Protocol]:
    """A protocol of uvicorn that waits for the headers of a request, and for somebody to read a reply, no longer.

    uvicorn itself waits for ever for a client that has begun to send them, and for one that reads nothing. What follows
    the headers has a limit of its own (`capr.serve.limits.body`), and so has the time between two requests
    (`timeout_keep_alive`).
    """
    base: Any = kind

    class Impatient(base):  # type: ignore[misc]
        _late: asyncio.TimerHandle | None = None
        _reading: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            self._look()
            self._look_again(0)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._look()

        def connection_lost(self, error: Exception | None) -> None:
            self._stop()
            if self._reading is not None:
                self._reading.cancel()
            super().connection_lost(error)

        def _look(self) -> None:
            """Whether a request is being answered; if not, one has to come soon."""
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop()
            elif self._late is None:
                self._late = asyncio.get_running_loop().call_later(seconds, self._close)

        def _look_again(self, before: int) -> None:
            """Whether the client has read anything of what it was sent, also of a connection that is to be closed."""
            unread = self.transport.get_write_buffer_size()
            if unread and before and unread >= before:
                self.transport.abort()
            else:
                self._reading = asyncio.get_running_loop().call_later(seconds, self._look_again, unread)

        def _stop(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

        def _close(self) -> None:
            self._late = None
            busy = self.cycle is not None and not self.cycle.response_complete
            if not busy and not self.transport.is_closing():
                self.transport.close()

    return Impatient

"""Patience: a connection on which no request begins for some seconds is closed, so that idle ones do not pile up."""

from __future__ import annotations

import asyncio
from typing import Any


def impatient(kind: type[asyncio.Protocol], seconds: float) -> type[asyncio.Protocol]:
    """A protocol of uvicorn that waits for the headers of a request no longer than that.

    uvicorn itself waits for ever for a client that has begun to send them. What follows the headers has a limit of its
    own (`capr.serve.limits.body`), and so has the time between two requests (`timeout_keep_alive`).
    """
    base: Any = kind

    class Impatient(base):  # type: ignore[misc]
        _late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            self._look()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._look()

        def connection_lost(self, error: Exception | None) -> None:
            self._stop()
            super().connection_lost(error)

        def _look(self) -> None:
            """Whether a request is being answered; if not, one has to come soon."""
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop()
            elif self._late is None:
                self._late = asyncio.get_running_loop().call_later(seconds, self._close)

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

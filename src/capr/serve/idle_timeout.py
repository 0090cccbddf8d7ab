"""Idle timeout: close connections that stall, so that they do not pile up."""

from __future__ import annotations

import asyncio
from typing import Any


def with_idle_timeout(kind: type[asyncio.Protocol], seconds: float) -> type[asyncio.Protocol]:
    """Return a uvicorn protocol that closes a connection whose client sends no headers, or reads no reply, for a time.

    uvicorn itself has no timeout for a client that sends only part of the headers, or that does not read the reply. The
    body of a request has its own time limit (`capr.serve.limits.read_body`), and so does an idle connection between two
    requests (`timeout_keep_alive`).
    """
    base: Any = kind

    class IdleTimeoutProtocol(base):  # type: ignore[misc]
        _request_timer: asyncio.TimerHandle | None = None
        _read_timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            self._check_request()
            self._check_reading(0)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._check_request()

        def connection_lost(self, error: Exception | None) -> None:
            self._stop_request_timer()
            if self._read_timer is not None:
                self._read_timer.cancel()
            super().connection_lost(error)

        def _check_request(self) -> None:
            """Start the timer of the next request, unless the server is answering one."""
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop_request_timer()
            elif self._request_timer is None:
                self._request_timer = asyncio.get_running_loop().call_later(seconds, self._close)

        def _check_reading(self, unread_before: int) -> None:
            """Abort the connection if the client has read nothing since the last check, even while it closes."""
            unread = self.transport.get_write_buffer_size()
            if unread and unread_before and unread >= unread_before:
                self.transport.abort()
            else:
                self._read_timer = asyncio.get_running_loop().call_later(seconds, self._check_reading, unread)

        def _stop_request_timer(self) -> None:
            if self._request_timer is not None:
                self._request_timer.cancel()
                self._request_timer = None

        def _close(self) -> None:
            self._request_timer = None
            is_busy = self.cycle is not None and not self.cycle.response_complete
            if not is_busy and not self.transport.is_closing():
                self.transport.close()

    return IdleTimeoutProtocol

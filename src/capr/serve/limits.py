"""Limits: requests per second, wrong tokens per minute, and the size and time of a request body."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NoReturn

from starlette.types import Message, Receive, Scope

from capr.serve.problems import ProblemError

MAX_CALLERS = 10_000  # tokens and addresses to remember; the least recent are dropped first
MINUTE = 60.0


class RateLimit:
    """A token bucket for each token and each address: a steady rate with short bursts.

    Each worker counts its own requests.

    Args:
        rate: the number of requests per second; 0 for no limit.
        burst: the number of requests that a caller may send at once.
        clock: a function that returns the time in seconds.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, max(1.0, burst), clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> float:
        """Count a request. Return 0 if it may pass, else the seconds until the next one may."""
        if self._rate <= 0:
            return 0.0
        now = self._clock()
        left, last = self._left.get(caller, (self._burst, now))
        left = min(self._burst, left + (now - last) * self._rate)
        wait = 0.0 if left >= 1 else (1 - left) / self._rate
        self._left[caller] = (left - 1 if not wait else left, now)
        self._left.move_to_end(caller)
        if len(self._left) > MAX_CALLERS:
            self._left.popitem(last=False)
        return wait

    def check(self, caller: str) -> None:
        """Count a request.

        Raises:
            ProblemError: 429 if the request may not pass.
        """
        if wait := self.take(caller):
            fact = f"there were more than {self._rate:g} requests a second for too long"
            raise ProblemError(429, fact, "wait as long as Retry-After says, and send requests less often", wait)


class WrongTokens:
    """Counts wrong tokens by address. An address that sends many must wait longer and longer.

    Valid tokens still work from such an address, so users behind one address cannot lock each other out.

    Args:
        per_minute: the number of wrong tokens per minute that an address may send without waiting.
        clock: a function that returns the time in seconds.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute, self._clock = per_minute, clock
        self._counts: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self.count = 0

    def reject(self, address: str) -> NoReturn:
        """Count a wrong token, and reject the request.

        Raises:
            ProblemError: 401, or 429 after too many wrong tokens from this address.
        """
        self.count += 1
        now = self._clock()
        count, last = self._counts.get(address, (0.0, now))
        count = max(0.0, count - (now - last) * self._per_minute / MINUTE) + 1
        self._counts[address] = (count, now)
        self._counts.move_to_end(address)
        if len(self._counts) > MAX_CALLERS:
            self._counts.popitem(last=False)
        if count > self._per_minute:
            wait = min(MINUTE, 2 ** min(6.0, (count - self._per_minute) / self._per_minute))
            fact = "this address has sent too many tokens that are not valid"
            raise ProblemError(429, fact, "check the token, and wait as long as Retry-After says", wait)
        fact = "the token is not valid: it is wrong, revoked or expired"
        raise ProblemError(401, fact, "ask the administrator for a new one (capr token create)")


async def read_body(scope: Scope, receive: Receive, max_bytes: int, seconds: float) -> Receive:
    """Read the whole body of a request, and return a `receive` that replays it.

    Raises:
        ProblemError: 413 if the body is too large, whatever its Content-Length; 408 if it arrives too slowly.
    """
    too_large = ProblemError(413, f"the request has more than {max_bytes:,} bytes", "send less, or in several requests")
    length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    if not length.isdigit() or int(length) > max_bytes:
        raise too_large
    chunks: list[bytes] = []
    size = 0
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        try:
            message = await asyncio.wait_for(receive(), deadline - asyncio.get_running_loop().time())
        except TimeoutError as error:
            fact = f"the request had not arrived after {seconds:g} seconds"
            raise ProblemError(408, fact, "send it faster, or in several requests") from error
        if message["type"] != "http.request":
            return _replay([message], receive)
        size += len(message.get("body", b""))
        if size > max_bytes:
            raise too_large
        chunks.append(message.get("body", b""))
        if not message.get("more_body"):
            message = {"type": "http.request", "body": b"".join(chunks), "more_body": False}
            return _replay([message], receive)


def _replay(messages: list[Message], receive: Receive) -> Receive:
    """Return a `receive` that yields these messages before those of another."""

    async def replay() -> Message:
        return messages.pop(0) if messages else await receive()

    return replay

"""Limits: how often somebody may ask, how large a request may be, and how long it may take to arrive."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.types import Message, Receive, Scope

from capr.serve.problems import ProblemError

REMEMBERED = 10_000  # tokens and addresses; whoever has not asked for longest is forgotten first
MINUTE = 60.0


class Rate:
    """So many requests a second for long, and a few more at once; of each token and each address.

    Each worker counts for itself.

    Args:
        rate: requests a second; 0 for any number.
        burst: requests at once.
        clock: tells the time in seconds.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, max(1.0, burst), clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, who: str) -> float:
        """0 if the request may pass, and else the seconds until the next one may."""
        if self._rate <= 0:
            return 0.0
        now = self._clock()
        left, then = self._left.get(who, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        wait = 0.0 if left >= 1 else (1 - left) / self._rate
        self._left[who] = (left - 1 if not wait else left, now)
        self._left.move_to_end(who)
        if len(self._left) > REMEMBERED:
            self._left.popitem(last=False)
        return wait

    def check(self, who: str) -> None:
        """429 if the request may not pass."""
        if wait := self.take(who):
            fact = f"there were more than {self._rate:g} requests a second for too long"
            raise ProblemError(429, fact, "wait as long as Retry-After says, and ask less often", wait)


class WrongTokens:
    """Counts tokens that are not valid; an address that sends many has to wait longer and longer.

    A valid token is served from there all the same: nobody can be locked out by a neighbour, and nobody can guess one.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._wrong: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self.count = 0

    def count_one(self, address: str) -> None:
        """Raises 401, or 429 once there were too many."""
        self.count += 1
        now = self._clock()
        wrong, then = self._wrong.get(address, (0.0, now))
        wrong = max(0.0, wrong - (now - then) * self._most / MINUTE) + 1
        self._wrong[address] = (wrong, now)
        self._wrong.move_to_end(address)
        if len(self._wrong) > REMEMBERED:
            self._wrong.popitem(last=False)
        if wrong > self._most:
            wait = min(MINUTE, 2 ** min(6.0, (wrong - self._most) / self._most))
            fact = "too many tokens were sent from this address that are not valid"
            raise ProblemError(429, fact, "check the token, and wait as long as Retry-After says", wait)
        fact = "the token is not valid: it is wrong, revoked or expired"
        raise ProblemError(401, fact, "ask whoever runs the server for one (capr token create)")


async def body(scope: Scope, receive: Receive, most: int, seconds: float) -> Receive:
    """Reads a request to its end, and gives it again to whoever asks for it.

    Raises:
        ProblemError: 413 if it has too many bytes, whether it says so or not, 408 if it comes too slowly.
    """
    large = ProblemError(413, f"the request has more than {most:,} bytes", "send less, or in several requests")
    said = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    if not said.isdigit() or int(said) > most:
        raise large
    pieces: list[bytes] = []
    size = 0
    until = asyncio.get_running_loop().time() + seconds
    while True:
        try:
            message = await asyncio.wait_for(receive(), until - asyncio.get_running_loop().time())
        except TimeoutError as error:
            fact = f"the request had not arrived after {seconds:g} seconds"
            raise ProblemError(408, fact, "send it faster, or in several requests") from error
        if message["type"] != "http.request":
            return _replayed([message], receive)
        size += len(message.get("body", b""))
        if size > most:
            raise large
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            whole = {"type": "http.request", "body": b"".join(pieces), "more_body": False}
            return _replayed([whole], receive)


def _replayed(messages: list[Message], receive: Receive) -> Receive:
    async def again() -> Message:
        return messages.pop(0) if messages else await receive()

    return again

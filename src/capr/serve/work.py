"""Work: what takes a processor's time is done by a few threads, for which only so many requests may wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from capr.serve.problems import SOON, ProblemError

Done = TypeVar("Done")


class Work:
    """Threads with a queue before them that has an end.

    Args:
        threads: how many.
        waiting: requests that may wait for one.
        seconds: how long.
    """

    def __init__(self, threads: int, waiting: int, seconds: float) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="capr-work")
        self._free = asyncio.Semaphore(threads)
        self._most, self._seconds = threads + waiting, seconds
        self.waiting = self.running = self.refused = 0

    async def run(self, what: Callable[[], Done], gone: asyncio.Event | None = None) -> Done:
        """Does it in a thread; 503 if too many wait, or if it had to wait too long.

        Args:
            what: to do.
            gone: is set when nobody waits for it any more; what has not begun by then is left undone.
        """
        if self.running + self.waiting >= self._most:
            self.refused += 1
            raise _busy(f"{self.waiting} requests are waiting already")
        self.waiting += 1
        try:
            await self._thread(gone)
        finally:
            self.waiting -= 1
        self.running += 1
        future = asyncio.get_running_loop().run_in_executor(self._threads, what)
        future.add_done_callback(self._done)  # a client that goes away does not end what runs
        return await asyncio.shield(future)

    async def _thread(self, gone: asyncio.Event | None) -> None:
        """Returns when a thread is free."""
        if not self._free.locked():
            await self._free.acquire()
            return
        acquiring = asyncio.ensure_future(self._free.acquire())
        leaving = asyncio.ensure_future(gone.wait() if gone else asyncio.sleep(2 * self._seconds))
        try:
            await asyncio.wait({acquiring, leaving}, timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if not acquiring.cancel():  # it has the thread already, which nobody needs any more
                self._free.release()
            raise
        finally:
            leaving.cancel()
        if acquiring.done():
            return
        acquiring.cancel()
        self.refused += 1
        if leaving.done():
            raise ProblemError(408, "the client has gone before its turn came", "ask again")
        raise _busy(f"no thread was free for {self._seconds:g} seconds")

    def _done(self, future: asyncio.Future[Done]) -> None:
        self.running -= 1
        self._free.release()
        if not future.cancelled():
            future.exception()  # whoever waited has been told

    def close(self) -> None:
        """Waits for what runs."""
        self._threads.shutdown(wait=True)


def _busy(fact: str) -> ProblemError:
    return ProblemError(503, f"the server is busy: {fact}", "try again in a moment", SOON)

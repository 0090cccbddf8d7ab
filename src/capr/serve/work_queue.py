"""The work queue: a few threads do the work, and a limited number of requests may wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from capr.serve.problems import SOON, ProblemError

Done = TypeVar("Done")


class WorkQueue:
    """Threads with a bounded queue.

    Args:
        threads: the number of threads.
        waiting: the number of requests that may wait for a thread.
        seconds: the time that a request may wait.
    """

    def __init__(self, threads: int, waiting: int, seconds: float) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="capr-work")
        self._free = asyncio.Semaphore(threads)
        self._capacity, self._seconds = threads + waiting, seconds
        self.waiting = self.running = self.refused = 0

    async def run(self, task: Callable[[], Done], disconnected: asyncio.Event | None = None) -> Done:
        """Run a task in a thread, and return its result.

        Args:
            task: the function to call.
            disconnected: an event that is set when the client disconnects. A task that has not begun by then never
                begins.

        Raises:
            ProblemError: 503 if too many requests wait, or if no thread becomes free in time; 408 if the client
                disconnects first.
        """
        if self.running + self.waiting >= self._capacity:
            self.refused += 1
            raise _busy(f"{self.waiting} requests are already waiting")
        self.waiting += 1
        try:
            await self._acquire_thread(disconnected)
        finally:
            self.waiting -= 1
        self.running += 1
        future = asyncio.get_running_loop().run_in_executor(self._threads, task)
        future.add_done_callback(self._finish)  # a client that disconnects does not end a running task
        return await asyncio.shield(future)

    async def _acquire_thread(self, disconnected: asyncio.Event | None) -> None:
        """Wait for a free thread, and reserve it."""
        if not self._free.locked():
            await self._free.acquire()
            return
        acquiring = asyncio.ensure_future(self._free.acquire())
        disconnecting = asyncio.ensure_future(disconnected.wait() if disconnected else asyncio.sleep(2 * self._seconds))
        try:
            await asyncio.wait({acquiring, disconnecting}, timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if not acquiring.cancel():  # it has acquired the thread already
                self._free.release()
            raise
        finally:
            disconnecting.cancel()
        if acquiring.done():
            return
        acquiring.cancel()
        self.refused += 1
        if disconnecting.done():
            raise ProblemError(408, "the client disconnected while it waited", "send the request again")
        raise _busy(f"no thread was free for {self._seconds:g} seconds")

    def _finish(self, future: asyncio.Future[Done]) -> None:
        self.running -= 1
        self._free.release()
        if not future.cancelled():
            future.exception()  # mark it as retrieved; `run` has raised it to the request

    def close(self) -> None:
        """Wait for the running tasks."""
        self._threads.shutdown(wait=True)


def _busy(fact: str) -> ProblemError:
    return ProblemError(503, f"the server is busy: {fact}", "try again in a moment", SOON)

"""The write lock of a library: one process at a time holds it, and an error names that process."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from capr.documents import BusyError, CaprError


@contextmanager
def writer_lock(folder: Path, wait: float = 0) -> Iterator[None]:
    """Hold the write lock of a library; the system releases it when the process ends, even if it was killed.

    Args:
        folder: the library.
        wait: seconds to wait for another process, such as a reader that updates the derived indexes.

    Raises:
        CaprError: another process holds the lock, or the folder cannot be written. The message has the process id.
    """
    try:
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        fix = "give this user write access there, or copy the library"
        raise CaprError(f"{folder} cannot be changed ({error.strerror}). Fix: {fix}.") from error
    try:
        deadline = time.monotonic() + wait
        while not _lock(descriptor):
            if time.monotonic() > deadline:
                holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "unknown"
                fix = "wait until it has finished, or end it; searching is possible meanwhile"
                raise BusyError(f"{folder} is being written by process {holder}. Fix: {fix}.")
            time.sleep(0.05)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def is_locked(folder: Path) -> bool:
    """Whether a process is writing."""
    try:
        descriptor = os.open(folder / "lock", os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _lock(descriptor: int) -> bool:
    """Try to take the lock; return whether that worked."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

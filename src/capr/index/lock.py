"""The right to write: one process at a time, and the others learn which one."""

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
    """Holds the right to write; it goes with the process, however that ends.

    Args:
        folder: of the library.
        wait: seconds to wait for somebody else, such as a reader that brings an index up to date.

    Raises:
        CaprError: somebody else holds it, with the process id; or the folder cannot be written.
    """
    try:
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        fix = "give this user the right to write there, or copy the library"
        raise CaprError(f"{folder} cannot be changed ({error.strerror}). Fix: {fix}.") from error
    try:
        until = time.monotonic() + wait
        while not _locked(descriptor):
            if time.monotonic() > until:
                holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "unknown"
                fix = "wait until it has finished, or end it; searching is possible meanwhile"
                raise BusyError(f"{folder} is being written by process {holder}. Fix: {fix}.")
            time.sleep(0.05)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def held(folder: Path) -> bool:
    """Whether somebody is writing."""
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


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

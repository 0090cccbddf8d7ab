"""Training of one model by several processes. torchrun starts them, and each handles a part of every batch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import distributed


@contextmanager
def parallel() -> Iterator[bool]:
    """Join the other processes of torchrun, if any. Yield true in the first process, which alone writes files.

    The other processes wait until the first has prepared the files that all of them read.
    """
    if world_size() == 1:
        yield True
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield distributed.get_rank() == 0
    finally:
        distributed.destroy_process_group()


def rank() -> int:
    """Return the number of this process; 0 for the first or only process."""
    return int(os.environ.get("RANK", 0))


def world_size() -> int:
    """Return the number of processes."""
    return int(os.environ.get("WORLD_SIZE", 1))


def wait_for_all() -> None:
    """Wait for all processes."""
    if distributed.is_available() and distributed.is_initialized():
        distributed.barrier()

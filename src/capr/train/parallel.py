"""Several processes that train one model, started by torchrun; each has its share of every batch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import distributed


@contextmanager
def parallel() -> Iterator[bool]:
    """Joins the other processes, if there are some; true in the first, which alone writes.

    The others wait until the first has made what all of them read.
    """
    if int(os.environ.get("WORLD_SIZE", 1)) == 1:
        yield True
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield distributed.get_rank() == 0
    finally:
        distributed.destroy_process_group()


def together() -> None:
    """Waits for all processes."""
    if distributed.is_available() and distributed.is_initialized():
        distributed.barrier()

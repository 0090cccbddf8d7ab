"""Saves memory: the encoder reads a batch in parts, one after the other, and the gradient is still exact.

The backward pass computes the activations of each part again instead of storing them. The loss sees the outputs of all
parts, so in-batch softmax covers the whole batch, however small the parts are. Dropout is the same both times.

Reference: Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of malloc.h
Inputs = dict[str, Tensor]  # each (rows, width)


def read_parts(network: Callable[..., Any], parts: Sequence[Inputs], limit: int) -> list[Any]:
    """Return the outputs of a network for the parts of a batch, in their order. A large part has several outputs.

    Args:
        network: a function that takes inputs by name and treats each row separately.
        parts: the inputs of the batch.
        limit: number of word pieces, with padding, that the network reads at once; 0 for no limit. Rows stay whole.
    """
    if not limit or sum(_size(part) for part in parts) <= limit:
        return [network(**part) for part in parts]
    slices = [inputs for part in parts for inputs in _cut(part, limit)]
    if not torch.is_grad_enabled():
        return [network(**inputs) for inputs in slices]
    return [checkpoint(partial(network, **inputs), use_reentrant=False) for inputs in slices]


def read_whole(network: Callable[..., Tensor], inputs: Inputs, limit: int) -> Tensor:
    """Return the output of a network for a batch of one width."""
    return torch.cat(read_parts(network, [inputs], limit))


def return_freed_memory() -> None:
    """Make the C library return freed memory to the operating system at once.

    On a CPU, torch aligns its tensors, and glibc seldom reuses the memory of a freed tensor: after a step that needs
    2 GB, the process has 4 GB or more. With this setting, tensors of a megabyte or more get their own pages, and glibc
    returns these. This costs about a fifth of the time.
    """
    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL("libc.so.6").mallopt(MMAP_THRESHOLD, 1 << 20)


def _size(inputs: Inputs) -> int:
    return len(next(iter(inputs.values()))) * _width(inputs)


def _cut(inputs: Inputs, limit: int) -> Iterator[Inputs]:
    size = max(1, limit // _width(inputs))
    for begin in range(0, len(next(iter(inputs.values()))), size):
        yield {name: tensor[begin : begin + size] for name, tensor in inputs.items()}


def _width(inputs: Inputs) -> int:
    """Return the width of the widest input: queries and passages may be separate inputs."""
    return max(1, *(tensor.shape[1] for tensor in inputs.values()))

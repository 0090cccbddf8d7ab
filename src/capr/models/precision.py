"""Mixed precision."""

from __future__ import annotations

from typing import Any

import torch


def autocast(device: str) -> Any:
    """Return a context of mixed precision: on a GPU, the 16-bit type that it supports; on a CPU, none."""
    dtype = torch.bfloat16 if device != "cuda" or torch.cuda.is_bf16_supported() else torch.float16
    return torch.autocast(device, dtype, enabled=device == "cuda")

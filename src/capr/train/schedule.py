"""How the learning rate goes."""

from __future__ import annotations

from collections.abc import Callable


def warm_up_then_decay(steps: int, warmup: float) -> Callable[[int], float]:
    """The learning rate rises for a part of the steps, then falls in a straight line to 0."""
    rise = max(1, int(steps * warmup))
    return lambda step: min((step + 1) / rise, max(0.0, (steps - step) / max(1, steps - rise)))

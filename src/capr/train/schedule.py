"""Learning rate schedules: functions from a step to a share of the highest learning rate."""

from __future__ import annotations

from collections.abc import Callable

Rate = Callable[[int], float]


def warm_up_then_decay(steps: int, warmup: float) -> Rate:
    """Return a schedule that rises linearly during the warm-up, then falls linearly to 0."""
    rise = max(1, int(steps * warmup))
    return lambda step: min((step + 1) / rise, max(0.0, (steps - step) / max(1, steps - rise)))


def linear_decay(steps: int, least: float = 0.02) -> Rate:
    """Return a schedule that falls linearly to a minimum."""
    return lambda step: max(least, 1 - step / steps)


def decay_by_epoch(factor: float, epoch_steps: int) -> Rate:
    """Return a schedule that multiplies the learning rate by a factor after each epoch."""
    return lambda step: factor ** (step // epoch_steps)

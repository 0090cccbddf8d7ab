"""What derived indexes share: the state that they carry, and the error that they are damaged."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

STATE = "state.json"


class DamagedError(Exception):
    """The files cannot be read."""


def load_state(folder: Path) -> dict[str, Any]:
    """What `save_state` wrote; raises `DamagedError` where it is not that."""
    try:
        state = json.loads((folder / STATE).read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedError(f"{STATE} cannot be read") from error
    if not isinstance(state, dict) or state.pop("sum", None) != _sum(state):
        raise DamagedError(f"{STATE} is not what was written")
    return state


def save_state(folder: Path, state: dict[str, Any]) -> None:
    """Writes `state.json` so that it is there wholly or not at all."""
    part = folder / f"{STATE}.part"
    with part.open("w", encoding="utf-8") as file:
        json.dump({**state, "sum": _sum(state)}, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(folder / STATE)


def _sum(state: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(state).encode())

"""Shared by the derived indexes: matches, the state file and the error about damaged files."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any, NamedTuple

STATE = "state.json"


class Match(NamedTuple):
    """The number of a passage and its score."""

    number: int
    score: float


class DamagedError(Exception):
    """The files of a derived index cannot be read."""


def load_state(folder: Path) -> dict[str, Any]:
    """Read the state that `save_state` wrote; raise `DamagedError` if the file is missing or was altered."""
    try:
        state = json.loads((folder / STATE).read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedError(f"{STATE} cannot be read") from error
    if not isinstance(state, dict) or state.pop("sum", None) != _checksum(state):
        raise DamagedError(f"{STATE} differs from what was written")
    return state


def save_state(folder: Path, state: dict[str, Any]) -> None:
    """Replace `state.json` in one step, so that a crash leaves the old or the new file."""
    part = folder / f"{STATE}.part"
    with part.open("w", encoding="utf-8") as file:
        json.dump({**state, "sum": _checksum(state)}, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(folder / STATE)


def _checksum(state: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(state).encode())

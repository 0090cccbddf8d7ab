"""The folders of the built-in models."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

WEIGHTS = "CAPR_WEIGHTS"  # the environment variable that names a folder of models to use instead
SHIPPED = "capr"  # stored in a library instead of the folder, whose path differs between machines


def shipped(kind: str) -> Path:
    """Return the folder of the built-in `encoder`, `ranker` or `reader`, or of its replacement in CAPR_WEIGHTS."""
    replacement = os.environ.get(WEIGHTS)
    return (Path(replacement) if replacement else Path(str(files("capr").joinpath("weights")))) / kind

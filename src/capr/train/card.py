"""The model card: training data, settings and scores of a model."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from capr.version import __version__

FACTS = "training.json"  # the file of the card for programs
# The names of scores that people read, by their keys in `training.json`; the bits follow a comma.
LABELS = {"first as torch": "same top passage as torch", "as torch": "same answer as torch"}


def revision() -> str:
    """Return the git revision of the code, with a + if the code was changed, or the version without git."""
    folder = Path(__file__).parent
    try:
        process = subprocess.run(
            ["git", "describe", "--always", "--dirty=+"], cwd=folder, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return f"capr {__version__}"
    return process.stdout.strip()


def write(
    folder: Path,
    name: str,
    kind: str,
    data: Mapping[str, Any],
    licence: str,
    settings: Mapping[str, Any],
    scores: Mapping[str, float],
) -> None:
    """Write `README.md` and, for programs, the facts."""
    facts = {
        "name": name,
        "kind": kind,
        "revision": revision(),
        "date": date.today().isoformat(),
        "licence": licence,
        "data": dict(data),
        "settings": dict(settings),
        "scores": dict(scores),
    }
    (folder / FACTS).write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", "utf-8")
    lines = [
        f"# {name}",
        "",
        f"A {kind} for clinical answer passages, trained by capr ({facts['revision']}) on {facts['date']}.",
        "",
        f"Licence of the training data: {licence or 'not stated'}.",
    ]
    for title, table in (("Data", data), ("Settings", settings), ("Scores on the validation split", scores)):
        lines += ["", f"## {title}", "", "| | |", "|---|---|"]
        lines += [f"| {label(key) if table is scores else key} | {_format(value)} |" for key, value in table.items()]
    (folder / "README.md").write_text("\n".join(lines) + "\n", "utf-8")


def label(score: str) -> str:
    """Return the name of a score that people read.

    >>> label("as torch, 8 bits"), label("R@1")
    ('same answer as torch, 8 bits', 'R@1')
    """
    name, comma, bits = score.partition(",")
    return f"{LABELS.get(name, name)}{comma}{bits}"


def _format(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)

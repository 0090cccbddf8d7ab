"""The curve of a query over a document as a picture, as in figure 4 of the CDV paper."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from capr.evaluate.plots import COLOURS, suits
from capr.search import Curve

SHORTEST, LONGEST = 8.0, 18.0  # inches
NAMED = 26  # characters of a heading
LINE = 0.25  # inches between the beginnings of two headings that can be read


def draw(path: Path, curve: Curve) -> None:
    """Draws a bar for each sentence, entity, aspect and both above each other, with the sections along the document."""
    suits(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    parts = [("entity", curve.entity), ("aspect", curve.aspect)]
    rows = [(name, f"{name}\n“{_short(words)}”") for name, words in parts if words]
    rows += [("both", "both\n(mean)")] if len(rows) > 1 else []
    width = min(LONGEST, max(SHORTEST, 0.09 * len(curve) + 2))
    figure = Figure(figsize=(width, 1.2 + 1.5 * len(rows)), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(len(rows), 1, squeeze=False, sharex=True, sharey=True)[:, 0]
    starts = curve.first_sentences()
    edges = [place for place, _ in starts] + [len(curve)]
    places = range(1, len(curve) + 1)
    lowest, highest = 0.0, 1.0
    for colour, axis, (name, label) in zip(COLOURS, axes, rows, strict=False):
        values = [getattr(one, name) for one in curve]
        lowest, highest = min([lowest, *values]), max([highest, *values])
        axis.bar(places, values, width=1.0, color=colour, edgecolor="white", linewidth=0.3, zorder=2)
        axis.axhline(0, color="black", linewidth=0.6)
        axis.set_ylabel(label)
        axis.grid(axis="y", alpha=0.3)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
        for number, (begin, end) in enumerate(pairwise(edges)):
            axis.axvspan(begin + 0.5, end + 0.5, color="black", alpha=0.05 if number % 2 else 0, linewidth=0, zorder=0)
            axis.axvline(begin + 0.5, color="black", alpha=0.35, linewidth=0.7, linestyle=":")
    if len(curve):
        inside = [place for place, one in zip(places, curve, strict=True) if curve.answer.covers(one.span)]
        axes[-1].axvspan(inside[0] - 0.5, inside[-1] + 0.5, 0, 0.04, color="black", linewidth=0)
        axes[-1].annotate(
            "answer", (inside[0] - 0.5, 0.06), xycoords=("data", "axes fraction"), fontsize=8, color="black"
        )
    axes[0].set(xlim=(0.5, max(1, len(curve)) + 0.5), ylim=(lowest - 0.02, highest), yticks=(0, 0.5, 1))
    named = _apart(starts, LINE / (0.85 * width) * len(curve))
    headings = [_short(heading.split(" | ")[-1]) for _, heading in named]
    top = axes[0].secondary_xaxis("top")
    top.set_xticks([place + 0.5 for place, _ in named], headings, rotation=32, ha="left", fontsize=8)
    top.tick_params(length=0, pad=1)
    top.spines["top"].set_visible(False)
    axes[-1].set_xlabel(f"sentence of “{_short(curve.document.title or curve.document.id)}”")
    figure.supylabel("weighted cosine with the query", fontsize=9)
    figure.savefig(path, dpi=130)


def _apart(starts: Sequence[tuple[int, str]], least: float) -> list[tuple[int, str]]:
    """The headings that are far enough from the one before to be read."""
    found: list[tuple[int, str]] = []
    for place, heading in starts:
        if not found or place - found[-1][0] >= least:
            found.append((place, heading))
    return found


def _short(words: str) -> str:
    return words if len(words) <= NAMED else words[: NAMED - 1] + "…"

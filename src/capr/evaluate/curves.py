"""Draw the curve of a query over a document, as in figure 4 of the CDV paper."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from capr.evaluate.plots import COLOURS, check_format
from capr.search import Curve

MIN_WIDTH, MAX_WIDTH = 8.0, 18.0  # inches
HEADING_LENGTH = 26  # characters
HEADING_SPACING = 0.25  # inches between two headings, so that both are readable


def draw(path: Path, curve: Curve) -> None:
    """Draw a bar for the score of each sentence, in one chart for each of entity, aspect and both, and the sections."""
    check_format(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    halves = [("entity", curve.entity), ("aspect", curve.aspect)]
    rows = [(name, f"{name}\n“{_shortened(words)}”") for name, words in halves if words]
    rows += [("both", "both\n(mean)")] if len(rows) > 1 else []
    width = min(MAX_WIDTH, max(MIN_WIDTH, 0.09 * len(curve) + 2))
    figure = Figure(figsize=(width, 1.2 + 1.5 * len(rows)), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(len(rows), 1, squeeze=False, sharex=True, sharey=True)[:, 0]
    starts = curve.first_sentences()
    edges = [position for position, _ in starts] + [len(curve)]
    positions = range(1, len(curve) + 1)
    lowest, highest = 0.0, 1.0
    for colour, axis, (name, label) in zip(COLOURS, axes, rows, strict=False):
        values = [getattr(sentence, name) for sentence in curve]
        lowest, highest = min([lowest, *values]), max([highest, *values])
        axis.bar(positions, values, width=1.0, color=colour, edgecolor="white", linewidth=0.3, zorder=2)
        axis.axhline(0, color="black", linewidth=0.6)
        axis.set_ylabel(label)
        axis.grid(axis="y", alpha=0.3)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
        for number, (begin, end) in enumerate(pairwise(edges)):
            axis.axvspan(begin + 0.5, end + 0.5, color="black", alpha=0.05 if number % 2 else 0, linewidth=0, zorder=0)
            axis.axvline(begin + 0.5, color="black", alpha=0.35, linewidth=0.7, linestyle=":")
    if len(curve):
        answer_positions = [
            position for position, sentence in zip(positions, curve, strict=True) if curve.answer.covers(sentence.span)
        ]
        axes[-1].axvspan(answer_positions[0] - 0.5, answer_positions[-1] + 0.5, 0, 0.04, color="black", linewidth=0)
        axes[-1].annotate(
            "answer", (answer_positions[0] - 0.5, 0.06), xycoords=("data", "axes fraction"), fontsize=8, color="black"
        )
    axes[0].set(xlim=(0.5, max(1, len(curve)) + 0.5), ylim=(lowest - 0.02, highest), yticks=(0, 0.5, 1))
    labelled_starts = _readable_starts(starts, HEADING_SPACING / (0.85 * width) * len(curve))
    headings = [_shortened(heading.split(" | ")[-1]) for _, heading in labelled_starts]
    top = axes[0].secondary_xaxis("top")
    top.set_xticks([position + 0.5 for position, _ in labelled_starts], headings, rotation=32, ha="left", fontsize=8)
    top.tick_params(length=0, pad=1)
    top.spines["top"].set_visible(False)
    axes[-1].set_xlabel(f"sentence of “{_shortened(curve.document.title or curve.document.id)}”")
    figure.supylabel("weighted cosine with the query", fontsize=9)
    figure.savefig(path, dpi=130)


def _readable_starts(starts: Sequence[tuple[int, str]], spacing: float) -> list[tuple[int, str]]:
    """Return the headings that are far enough from the previous one to be readable."""
    readable: list[tuple[int, str]] = []
    for position, heading in starts:
        if not readable or position - readable[-1][0] >= spacing:
            readable.append((position, heading))
    return readable


def _shortened(words: str) -> str:
    return words if len(words) <= HEADING_LENGTH else words[: HEADING_LENGTH - 1] + "…"

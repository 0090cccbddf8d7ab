"""Plot the measures of readers: over the length of paragraphs, and the reliability of their confidences.

Reference: figures 2 and 6 of the paragraph-QA paper, see `capr.evaluate.reports`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from capr.evaluate.plots import COLOURS, check_format
from capr.evaluate.reports import ReaderResult, Spread, spreads
from capr.measures.answers import reliability

PANELS = (
    ("paragraph retrieval", (("P@1", "-"), ("P@2", "--"), ("P@3", ":"))),
    ("F1", (("PR-QA F1", "-"), ("Oracle-QA F1", "--"))),
    ("exact match", (("PR-QA EM", "-"), ("Oracle-QA EM", "--"))),
)


def plot_lengths(path: Path, measured: Sequence[ReaderResult]) -> None:
    """Draw each measure over the length of paragraphs: the mean of the readers as a line, their range as a band."""
    figure, axes = _make_figure(path, len(PANELS))
    spreads_by_cut: dict[str, list[Spread]] = {}
    for spread in spreads(measured):
        spreads_by_cut.setdefault(spread.cut, []).append(spread)
    for axis, (title, names) in zip(axes, PANELS, strict=True):
        for name, style in names:
            for colour, (cut, cut_spreads) in zip(COLOURS, spreads_by_cut.items(), strict=False):
                points = [
                    (spread.length, spread.mean[name], spread.lowest[name], spread.highest[name])
                    for spread in cut_spreads
                    if name in spread.mean
                ]
                if not points:
                    continue
                lengths, means, lows, highs = zip(*points, strict=True)
                label = f"{name.removesuffix(' F1').removesuffix(' EM')}, {cut}"
                axis.plot(lengths, _to_percent(means), style, color=colour, marker="o", ms=3, label=label)
                axis.fill_between(lengths, _to_percent(lows), _to_percent(highs), color=colour, alpha=0.15, linewidth=0)
        axis.set(xlabel="length of a paragraph on average, characters", ylabel="%", title=title)
        axis.grid(alpha=0.3)
        axis.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=130)


def plot_reliability(path: Path, measured: Sequence[ReaderResult]) -> None:
    """Draw the share of right answers and the number of answers over the confidence, in one panel for each reader."""
    figure, axes = _make_figure(path, len(measured))
    for axis, result in zip(axes, measured, strict=True):
        bins = reliability(result.confidences)
        widths = [interval.high - interval.low for interval in bins]
        axis.bar(
            [interval.low for interval in bins],
            [interval.right for interval in bins],
            widths,
            align="edge",
            color=COLOURS[0],
            edgecolor="white",
            label="right",
        )
        axis.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle="--", label="as it should be")
        axis.plot(
            [interval.confidence for interval in bins],
            [interval.right for interval in bins],
            "o",
            color=COLOURS[1],
            ms=4,
        )
        for interval in bins:
            axis.annotate(
                f"{interval.answers:,}",
                ((interval.low + interval.high) / 2, 0.01),
                ha="center",
                fontsize=7,
                color="gray",
            )
        title = f"{result.reader}, {result.cut}: expected calibration error {100 * result.measures['ECE']:.1f}%"
        axis.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence", ylabel="share that is right", title=title)
        axis.title.set_fontsize(9)
        axis.legend(frameon=False, fontsize=8, loc="upper left")
    figure.savefig(path, dpi=130)


def _make_figure(path: Path, panels: int) -> tuple[Any, Any]:
    check_format(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1 + 4.5 * panels, 5), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, panels, squeeze=False)[0]


def _to_percent(values: Sequence[float]) -> list[float]:
    return [100 * value for value in values]

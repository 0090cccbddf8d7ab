"""Pictures of reading: over the length of paragraphs, as in figures 2 and 6 of the paragraph-QA paper; reliability."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from capr.evaluate.answers import reliability
from capr.evaluate.plots import COLOURS, suits
from capr.evaluate.reports import Measured, Spread, spreads

PANELS = (
    ("paragraph retrieval", (("P@1", "-"), ("P@2", "--"), ("P@3", ":"))),
    ("F1", (("PR-QA F1", "-"), ("Oracle-QA F1", "--"))),
    ("exact match", (("PR-QA EM", "-"), ("Oracle-QA EM", "--"))),
)


def plot_lengths(path: Path, measured: Sequence[Measured]) -> None:
    """Draws each measure over the length of paragraphs: the mean of the readers as a line, their range as a band."""
    figure, axes = _figure(path, len(PANELS))
    by_cut: dict[str, list[Spread]] = {}
    for one in spreads(measured):
        by_cut.setdefault(one.cut, []).append(one)
    for axis, (title, names) in zip(axes, PANELS, strict=True):
        for name, style in names:
            for colour, (cut, some) in zip(COLOURS, by_cut.items(), strict=False):
                points = [
                    (one.length, one.mean[name], one.lowest[name], one.highest[name])
                    for one in some
                    if name in one.mean
                ]
                if not points:
                    continue
                lengths, means, lows, highs = zip(*points, strict=True)
                label = f"{name.removesuffix(' F1').removesuffix(' EM')}, {cut}"
                axis.plot(lengths, _percent(means), style, color=colour, marker="o", ms=3, label=label)
                axis.fill_between(lengths, _percent(lows), _percent(highs), color=colour, alpha=0.15, linewidth=0)
        axis.set(xlabel="length of a paragraph on average, characters", ylabel="%", title=title)
        axis.grid(alpha=0.3)
        axis.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=130)


def plot_reliability(path: Path, measured: Sequence[Measured]) -> None:
    """Draws how many answers of each confidence are right, and how many there are; one panel for each."""
    figure, axes = _figure(path, len(measured))
    for axis, one in zip(axes, measured, strict=True):
        bins = reliability(one.confidences)
        widths = [part.high - part.low for part in bins]
        axis.bar([part.low for part in bins], [part.right for part in bins], widths, align="edge", color=COLOURS[0],
                 edgecolor="white", label="right")  # fmt: skip
        axis.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle="--", label="as it should be")
        axis.plot([part.confidence for part in bins], [part.right for part in bins], "o", color=COLOURS[1], ms=4)
        for part in bins:
            axis.annotate(
                f"{part.answers:,}", ((part.low + part.high) / 2, 0.01), ha="center", fontsize=7, color="gray"
            )
        title = f"{one.reader}, {one.cut}: expected calibration error {100 * one.measures['ECE']:.1f} %"
        axis.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence", ylabel="share that is right", title=title)
        axis.title.set_fontsize(9)
        axis.legend(frameon=False, fontsize=8, loc="upper left")
    figure.savefig(path, dpi=130)


def _figure(path: Path, panels: int) -> tuple[Any, Any]:
    suits(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1 + 4.5 * panels, 5), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, panels, squeeze=False)[0]


def _percent(values: Sequence[float]) -> list[float]:
    return [100 * value for value in values]

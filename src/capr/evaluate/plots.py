"""Plots of results, as in the CDV paper: recall at each rank, and bars for each aspect and source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from capr.documents import CaprError
from capr.evaluate.matches import MATCHES, shares
from capr.evaluate.measures import Report
from capr.evaluate.scorers import Run, ranked
from capr.evaluate.task import Task

FORMATS = (".png", ".svg")
RANKS = 20
MATCH_COLOURS = ("#2f6d4f", "#8fbf9f", "#e0c36a", "#c9c9c9")  # both, entity, aspect, neither
COLOURS = ("#1f5a8c", "#c8553d", "#5b8c5a", "#8d6a9f", "#c9a227")


def plot(path: Path, task: Task, runs: Sequence[tuple[Report, Run]], measure: str = "R@1") -> None:
    """Draws recall at the first ranks, and the measure by group; one colour for each run."""
    suits(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    kinds = list(runs[0][0].groups)
    matched = bool(runs[0][0].matches)
    columns = 1 + len(kinds)
    figure = Figure(figsize=(1 + 4.5 * columns, 10 if matched else 5), layout="constrained")
    FigureCanvasAgg(figure)
    widths = [1, *[1.1] * len(kinds)]
    grid: Any = figure.subplots(2 if matched else 1, columns, squeeze=False, width_ratios=widths)
    axes = grid[0]
    for colour, (report, run) in zip(cycle(COLOURS), runs, strict=False):
        axes[0].plot(range(1, RANKS + 1), 100 * recall(task, run), marker="o", ms=3, color=colour, label=report.model)
    axes[0].set(
        xlabel="rank k", ylabel="R@k, %", title=f"{runs[0][0].protocol}, queries: {runs[0][0].queries}", ylim=(0, 101)
    )
    axes[0].set_xticks([1, 5, 10, 15, 20])
    axes[0].grid(alpha=0.3)
    axes[0].legend(loc="lower right", frameon=False)
    for place, kind in enumerate(kinds, 1):
        _bars(axes[place], [report for report, _ in runs], kind, measure)
    if matched:
        _matches(grid[1][0], {report.model: report.matches for report, _ in runs}, "what the first passage matches")
        first = runs[0][0]
        for place, kind in enumerate(kinds, 1):
            names = list(first.by(kind, measure))[:15]
            parts = {
                name: {q: m for q, m in first.matches.items() if first.groups[kind].get(q) == name} for name in names
            }
            _matches(grid[1][place], parts, f"{first.model}, by {kind}")
    figure.savefig(path, dpi=130)


def _matches(axes: Any, parts: Mapping[str, Mapping[str, str]], title: str) -> None:
    """How often both, the entity alone, the aspect alone or neither is right, as stacked bars."""
    left = np.zeros(len(parts))
    for match, colour in zip(MATCHES, MATCH_COLOURS, strict=True):
        values = 100 * np.array([shares(found)[match] for found in parts.values()])
        axes.barh(range(len(parts)), values, 0.8, left, color=colour, label=match)
        left += values
    axes.set_yticks(range(len(parts)), list(parts), fontsize=8)
    axes.invert_yaxis()
    axes.set(xlabel="queries, %", title=title, xlim=(0, 100))
    axes.legend(ncols=4, fontsize=8, frameon=False, loc="lower center", bbox_to_anchor=(0.5, -0.2))


def suits(path: Path) -> None:
    """Complains if a file is no picture by its name."""
    if path.suffix.lower() not in FORMATS:
        raise CaprError(f"{path} is no picture. Fix: end its name in {' or '.join(FORMATS)}.")


def _bars(axes: Any, reports: Sequence[Report], kind: str, measure: str) -> None:
    groups = list(reports[0].by(kind, measure).items())[:15]
    names = [f"{name} ({count:,})" for name, (_, count) in groups]
    height = 0.8 / len(reports)
    for number, (colour, report) in enumerate(zip(cycle(COLOURS), reports, strict=False)):
        values = report.by(kind, measure)
        places = np.arange(len(groups)) + (number - (len(reports) - 1) / 2) * height
        axes.barh(places, [100 * values[name][0] for name, _ in groups], height, color=colour, label=report.model)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set(xlabel=f"{measure}, %", title=f"by {kind}", xlim=(0, 100))
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)


def recall(task: Task, run: Run, ranks: int = RANKS) -> Any:
    """The mean recall at each of the first ranks: (ranks,)."""
    total = np.zeros(ranks)
    for asked in task.asked:
        first = ranked(run[asked.id], task.places)[:ranks]
        hits = np.array([id in asked.relevant for id in first] + [False] * (ranks - len(first)))
        total += np.cumsum(hits) / max(1, len(asked.relevant))
    return total / max(1, len(task.asked))

"""Plot results as in the CDV paper: recall at each rank, and bars for each aspect and source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from capr.documents import CaprError
from capr.evaluate.matches import MATCHES, shares
from capr.evaluate.measures import Evaluation
from capr.evaluate.scorers import ranked
from capr.evaluate.task import Run, Task

FORMATS = (".png", ".svg")
RANKS = 20
MATCH_COLOURS = ("#2f6d4f", "#8fbf9f", "#e0c36a", "#c9c9c9")  # both, entity, aspect, neither
COLOURS = ("#1f5a8c", "#c8553d", "#5b8c5a", "#8d6a9f", "#c9a227")


def plot(path: Path, task: Task, runs: Sequence[tuple[Evaluation, Run]], measure: str = "R@1") -> None:
    """Draw recall at the first ranks and the measure by group, in one colour for each run."""
    check_format(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    kinds = list(runs[0][0].groups)
    has_matches = bool(runs[0][0].matches)
    columns = 1 + len(kinds)
    figure = Figure(figsize=(1 + 4.5 * columns, 10 if has_matches else 5), layout="constrained")
    FigureCanvasAgg(figure)
    widths = [1, *[1.1] * len(kinds)]
    grid: Any = figure.subplots(2 if has_matches else 1, columns, squeeze=False, width_ratios=widths)
    axes = grid[0]
    for colour, (report, run) in zip(cycle(COLOURS), runs, strict=False):
        axes[0].plot(range(1, RANKS + 1), 100 * recall(task, run), marker="o", ms=3, color=colour, label=report.model)
    axes[0].set(
        xlabel="rank k", ylabel="R@k, %", title=f"{runs[0][0].protocol}, queries: {runs[0][0].queries}", ylim=(0, 101)
    )
    axes[0].set_xticks([1, 5, 10, 15, 20])
    axes[0].grid(alpha=0.3)
    axes[0].legend(loc="lower right", frameon=False)
    for column, kind in enumerate(kinds, 1):
        _draw_bars(axes[column], [report for report, _ in runs], kind, measure)
    if has_matches:
        _draw_matches(
            grid[1][0], {report.model: report.matches for report, _ in runs}, "what the first passage matches"
        )
        first_report = runs[0][0]
        for column, kind in enumerate(kinds, 1):
            names = list(first_report.by(kind, measure))[:15]
            matches_by_group = {
                name: {
                    query: match
                    for query, match in first_report.matches.items()
                    if first_report.groups[kind].get(query) == name
                }
                for name in names
            }
            _draw_matches(grid[1][column], matches_by_group, f"{first_report.model}, by {kind}")
    figure.savefig(path, dpi=130)


def _draw_matches(axes: Any, matches_by_name: Mapping[str, Mapping[str, str]], title: str) -> None:
    """Draw the shares of both, entity, aspect and neither as stacked bars."""
    left = np.zeros(len(matches_by_name))
    for match, colour in zip(MATCHES, MATCH_COLOURS, strict=True):
        values = 100 * np.array([shares(matches)[match] for matches in matches_by_name.values()])
        axes.barh(range(len(matches_by_name)), values, 0.8, left, color=colour, label=match)
        left += values
    axes.set_yticks(range(len(matches_by_name)), list(matches_by_name), fontsize=8)
    axes.invert_yaxis()
    axes.set(xlabel="queries, %", title=title, xlim=(0, 100))
    axes.legend(ncols=4, fontsize=8, frameon=False, loc="lower center", bbox_to_anchor=(0.5, -0.2))


def check_format(path: Path) -> None:
    """Raise CaprError unless the name of the file ends in .png or .svg."""
    if path.suffix.lower() not in FORMATS:
        raise CaprError(f"{path} is not a picture. Fix: end its name in {' or '.join(FORMATS)}.")


def _draw_bars(axes: Any, reports: Sequence[Evaluation], kind: str, measure: str) -> None:
    groups = list(reports[0].by(kind, measure).items())[:15]
    names = [f"{name} ({count:,})" for name, (_, count) in groups]
    height = 0.8 / len(reports)
    for number, (colour, report) in enumerate(zip(cycle(COLOURS), reports, strict=False)):
        values = report.by(kind, measure)
        positions = np.arange(len(groups)) + (number - (len(reports) - 1) / 2) * height
        axes.barh(positions, [100 * values[name][0] for name, _ in groups], height, color=colour, label=report.model)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set(xlabel=f"{measure}, %", title=f"by {kind}", xlim=(0, 100))
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)


def recall(task: Task, run: Run, ranks: int = RANKS) -> Any:
    """Return the mean recall at each of the first ranks: (ranks,)."""
    total = np.zeros(ranks)
    for query in task.queries:
        first_ids = ranked(run[query.id], task.positions)[:ranks]
        is_relevant = np.array([id in query.relevant for id in first_ids] + [False] * (ranks - len(first_ids)))
        total += np.cumsum(is_relevant) / max(1, len(query.relevant))
    return total / max(1, len(task.queries))

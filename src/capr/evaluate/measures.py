"""Measures of a run: the standard ones by ir_measures, per query, with confidence intervals and a test of differences.

Reference: recall and average precision are CDV's own (recall is found / relevant, not whether anything was found).
Randomisation test: Smucker, Allan and Carterette, A Comparison of Statistical Significance Tests for IR Evaluation,
2007.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from capr.documents import CaprError
from capr.evaluate.matches import matches, shares
from capr.evaluate.scorers import Run, ranked
from capr.evaluate.task import Task

MEASURES = ("R@1", "R@5", "R@10", "AP", "nDCG@10", "RR")
SAMPLES = 10_000


class Interval(NamedTuple):
    """Between these two the mean lies with 95 % confidence."""

    low: float
    high: float


@dataclass(frozen=True)
class Report:
    """A run measured.

    Attributes:
        protocol, model, queries: what was measured.
        per_query: by measure, the value of each query.
        groups: by kind (aspect, source), the group of each query.
        matches: of each query, what is right about the first passage: `both`, `entity`, `aspect` or `neither`.
    """

    protocol: str
    model: str
    queries: str
    per_query: Mapping[str, Mapping[str, float]]
    groups: Mapping[str, Mapping[str, str]]
    matches: Mapping[str, str] = field(default_factory=dict)

    @property
    def measures(self) -> dict[str, float]:
        """Means over all queries."""
        return {name: float(np.mean(list(values.values()))) for name, values in self.per_query.items()}

    def interval(self, measure: str, seed: int = 0) -> Interval:
        """By drawing queries again and again (bootstrap)."""
        values = np.array(list(self.per_query[measure].values()))
        draw = np.random.default_rng(seed)
        means = [values[draw.integers(0, len(values), len(values))].mean() for _ in range(1000)]
        return Interval(*(float(bound) for bound in np.percentile(means, (2.5, 97.5))))

    def by(self, kind: str, measure: str) -> dict[str, tuple[float, int]]:
        """The mean of each group and how many queries it has, the largest group first."""
        values: dict[str, list[float]] = {}
        for query, group in self.groups.get(kind, {}).items():
            values.setdefault(group, []).append(self.per_query[measure][query])
        order = sorted(values, key=lambda group: (-len(values[group]), group))
        return {group: (float(np.mean(values[group])), len(values[group])) for group in order}

    def as_json(self) -> dict[str, Any]:
        """A plain dictionary."""
        found = {"protocol": self.protocol, "model": self.model, "queries": self.queries, "measures": self.measures}
        return {**found, "matches": shares(self.matches)} if self.matches else found


def measure(task: Task, run: Run, model: str, form: str, names: Sequence[str] = MEASURES) -> Report:
    """The measures of a run, with ties in the order of the task's passages."""
    import ir_measures
    from ir_measures import Qrel, ScoredDoc

    wanted = [ir_measures.parse_measure(name) for name in names]
    judged = [Qrel(asked.id, id, 1) for asked in task.asked for id in sorted(asked.relevant)]
    listed = [
        ScoredDoc(query, id, float(-rank))
        for query, scores in run.items()
        for rank, id in enumerate(ranked(scores, task.places))
    ]
    per_query: dict[str, dict[str, float]] = {name: {asked.id: 0.0 for asked in task.asked} for name in names}
    for metric in ir_measures.iter_calc(wanted, judged, listed):
        per_query[str(metric.measure)][metric.query_id] = float(metric.value)
    kinds = dict.fromkeys(kind for asked in task.asked for kind in asked.groups)
    groups = {kind: {asked.id: asked.groups[kind] for asked in task.asked if kind in asked.groups} for kind in kinds}
    return Report(task.name, model, form, per_query, groups, matches(task, run) if task.spans else {})


def difference(one: Mapping[str, float], other: Mapping[str, float], seed: int = 0) -> tuple[float, float]:
    """How much larger the mean of one run is than that of another, and how probable so large a difference is by chance.

    A paired randomisation test: which of the two runs a query's values belong to is drawn by lot, ten thousand times.
    """
    if set(one) != set(other):
        raise CaprError("the two runs have different queries. Fix: compare runs of the same protocol and data.")
    gaps: NDArray[np.float64] = np.array([one[query] - other[query] for query in one])
    observed = float(gaps.mean())
    draw = np.random.default_rng(seed)
    extreme = 0
    for _ in range(SAMPLES // 100):
        signs = draw.integers(0, 2, (100, len(gaps))) * 2 - 1
        extreme += int((np.abs((signs * gaps).mean(1)) >= abs(observed) - 1e-12).sum())
    return observed, (extreme + 1) / (SAMPLES + 1)


def write_run(run: Run, task: Task, path: Path, name: str) -> None:
    """In TREC's format: query, Q0, passage, rank, score, name."""
    lines = (
        f"{_token(query)} Q0 {_token(id)} {rank} {scores[id]:.9g} {_token(name)}\n"
        for query, scores in run.items()
        for rank, id in enumerate(ranked(scores, task.places), 1)
    )
    _write(path, lines)


def write_qrels(task: Task, path: Path) -> None:
    """In TREC's format: query, 0, passage, 1."""
    _write(path, (f"{_token(a.id)} 0 {_token(id)} 1\n" for a in task.asked for id in sorted(a.relevant)))


def read_run(path: Path, task: Task) -> Run:
    """A run that `write_run` has written for the same task."""
    queries, passages = {_token(a.id): a.id for a in task.asked}, {_token(id): id for id in task.passages}
    found: Run = {asked.id: {} for asked in task.asked}
    for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
        columns = line.split()
        known = len(columns) == 6 and columns[0] in queries and columns[2] in passages
        if not known or not columns[3].isdecimal() or not _is_number(columns[4]):
            fix = "give a run that capr evaluate --run has written for this protocol and these data"
            raise CaprError(f"{path}, line {number}: {line[:60]!r} is not of this task. Fix: {fix}.")
        found[queries[columns[0]]][passages[columns[2]]] = float(columns[4])
    return found


def _is_number(word: str) -> bool:
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False


def _token(id: str) -> str:
    """An id without blanks, by which TREC separates its columns."""
    return re.sub(r"[\s%]", lambda found: f"%{ord(found[0]):02x}", id) or "%"


def _write(path: Path, lines: Iterable[str]) -> None:
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8") as file:
        file.writelines(lines)
    part.replace(path)

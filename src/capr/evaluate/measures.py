"""Measure a run with ir_measures, per query, with confidence intervals and a test of differences.

Recall and average precision are defined as by CDV: recall is the share of the relevant passages that the run has, not
whether it has any.

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
from capr.evaluate.scorers import ranked
from capr.evaluate.task import Run, Task

MEASURES = ("R@1", "R@5", "R@10", "AP", "nDCG@10", "RR")
SAMPLES = 10_000


class Interval(NamedTuple):
    """The 95% confidence interval of a mean."""

    low: float
    high: float


@dataclass(frozen=True)
class Evaluation:
    """The measures of a run.

    Attributes:
        protocol: the name of the protocol.
        model: the name of the model.
        queries: the form of the queries: `tuple` or `question`.
        per_query: the value of each query, by measure.
        groups: the group of each query, by kind of group (aspect, source).
        matches: what the first passage of each query matches: `both`, `entity`, `aspect` or `neither`.
    """

    protocol: str
    model: str
    queries: str
    per_query: Mapping[str, Mapping[str, float]]
    groups: Mapping[str, Mapping[str, str]]
    matches: Mapping[str, str] = field(default_factory=dict)

    @property
    def measures(self) -> dict[str, float]:
        """The mean of each measure over all queries."""
        return {name: float(np.mean(list(values.values()))) for name, values in self.per_query.items()}

    def interval(self, measure: str, seed: int = 0) -> Interval:
        """Return the confidence interval of a measure by drawing queries with replacement (bootstrap)."""
        values = np.array(list(self.per_query[measure].values()))
        rng = np.random.default_rng(seed)
        means = [values[rng.integers(0, len(values), len(values))].mean() for _ in range(1000)]
        return Interval(*(float(bound) for bound in np.percentile(means, (2.5, 97.5))))

    def by(self, kind: str, measure: str) -> dict[str, tuple[float, int]]:
        """Return the mean and the number of queries of each group, the largest group first."""
        values: dict[str, list[float]] = {}
        for query, group in self.groups.get(kind, {}).items():
            values.setdefault(group, []).append(self.per_query[measure][query])
        order = sorted(values, key=lambda group: (-len(values[group]), group))
        return {group: (float(np.mean(values[group])), len(values[group])) for group in order}

    def as_json(self) -> dict[str, Any]:
        """Return the means as a dictionary for JSON."""
        record = {"protocol": self.protocol, "model": self.model, "queries": self.queries, "measures": self.measures}
        return {**record, "matches": shares(self.matches)} if self.matches else record


def measure(task: Task, run: Run, model: str, form: str, names: Sequence[str] = MEASURES) -> Evaluation:
    """Measure a run; passages with the same score keep the order of the task's passages."""
    import ir_measures
    from ir_measures import Qrel, ScoredDoc

    parsed_measures = [ir_measures.parse_measure(name) for name in names]
    qrels = [Qrel(query.id, id, query.grade(id)) for query in task.queries for id in sorted(query.relevant)]
    ranking = [
        ScoredDoc(query, id, float(-rank))
        for query, scores in run.items()
        for rank, id in enumerate(ranked(scores, task.positions))
    ]
    per_query: dict[str, dict[str, float]] = {name: {query.id: 0.0 for query in task.queries} for name in names}
    for value in ir_measures.iter_calc(parsed_measures, qrels, ranking):
        per_query[str(value.measure)][value.query_id] = float(value.value)
    kinds = dict.fromkeys(kind for query in task.queries for kind in query.groups)
    groups = {kind: {query.id: query.groups[kind] for query in task.queries if kind in query.groups} for kind in kinds}
    has_pairs = task.spans and any(query.entity or query.aspect for query in task.queries)
    return Evaluation(task.name, model, form, per_query, groups, matches(task, run) if has_pairs else {})


def difference(values: Mapping[str, float], other_values: Mapping[str, float], seed: int = 0) -> tuple[float, float]:
    """Return the difference of the means of two runs, and its p-value.

    This is a paired randomisation test: it swaps the values of random queries between the runs, ten thousand times. The
    p-value is the probability of a difference at least as large by chance.
    """
    if set(values) != set(other_values):
        raise CaprError("the two runs have different queries. Fix: compare runs of the same protocol and data.")
    differences: NDArray[np.float64] = np.array([values[query] - other_values[query] for query in values])
    observed = float(differences.mean())
    rng = np.random.default_rng(seed)
    extreme = 0
    for _ in range(SAMPLES // 100):
        signs = rng.integers(0, 2, (100, len(differences))) * 2 - 1
        extreme += int((np.abs((signs * differences).mean(1)) >= abs(observed) - 1e-12).sum())
    return observed, (extreme + 1) / (SAMPLES + 1)


def write_run(run: Run, task: Task, path: Path, name: str) -> None:
    """Write a run in TREC's format: query, Q0, passage, rank, score, name."""
    lines = (
        f"{_without_blanks(query)} Q0 {_without_blanks(id)} {rank} {scores[id]:.9g} {_without_blanks(name)}\n"
        for query, scores in run.items()
        for rank, id in enumerate(ranked(scores, task.positions), 1)
    )
    _write_lines(path, lines)


def write_qrels(task: Task, path: Path) -> None:
    """Write the qrels of a task in TREC's format: query, 0, passage, grade."""
    lines = (
        f"{_without_blanks(query.id)} 0 {_without_blanks(id)} {query.grade(id)}\n"
        for query in task.queries
        for id in sorted(query.relevant)
    )
    _write_lines(path, lines)


def read_run(path: Path, task: Task) -> Run:
    """Read a run that `write_run` wrote for the same task.

    Raises:
        CaprError: a line is not of this task.
    """
    queries, passages = (
        {_without_blanks(query.id): query.id for query in task.queries},
        {_without_blanks(id): id for id in task.passages},
    )
    run: Run = {query.id: {} for query in task.queries}
    for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
        columns = line.split()
        is_known = len(columns) == 6 and columns[0] in queries and columns[2] in passages
        if not is_known or not columns[3].isdecimal() or not _is_number(columns[4]):
            fix = "name a run that capr evaluate --run wrote for this protocol and data"
            raise CaprError(f"{path}, line {number}: {line[:60]!r} is not of this task. Fix: {fix}.")
        run[queries[columns[0]]][passages[columns[2]]] = float(columns[4])
    return run


def _is_number(word: str) -> bool:
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False


def _without_blanks(id: str) -> str:
    """Return an id without blanks, because blanks separate the columns of TREC's format."""
    return re.sub(r"[\s%]", lambda match: f"%{ord(match[0]):02x}", id) or "%"


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8") as file:
        file.writelines(lines)
    part.replace(path)

"""Measures against hand values, and against other programs."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from capr.documents import CaprError
from capr.evaluate.measures import (
    MEASURES,
    Report,
    difference,
    measure,
    read_run,
    write_qrels,
    write_run,
)
from capr.evaluate.scorers import ranked
from capr.evaluate.task import Asked, Task


def only(report, measure, query="1"):
    return report.per_query[measure][query]


def task_of(passages, relevant, candidates=()):
    return Task("t", dict.fromkeys(passages, ""), [Asked("1", "e", "a", "", frozenset(relevant), tuple(candidates))])


def scored(order):
    return {"1": {id: float(len(order) - place) for place, id in enumerate(order)}}


def test_measures_of_several_relevant_passages_are_those_computed_by_hand():
    task = task_of("abcdef", "bdf")
    report = measure(task, scored("abcdef"), "m", "tuple")
    assert only(report, "R@1") == 0
    assert only(report, "R@5") == pytest.approx(2 / 3)
    assert only(report, "R@10") == 1
    assert only(report, "AP") == pytest.approx((1 / 2 + 2 / 4 + 3 / 6) / 3)
    assert only(report, "RR") == pytest.approx(1 / 2)
    gain = 1 / math.log2(3) + 1 / math.log2(5) + 1 / math.log2(7)
    assert only(report, "nDCG@10") == pytest.approx(gain / (1 + 1 / math.log2(3) + 1 / 2))


def test_recall_is_the_share_that_was_found_and_not_whether_any_was():
    assert only(measure(task_of("abcd", "ab"), scored("abcd"), "m", "tuple"), "R@1") == 0.5


def test_average_precision_is_over_all_relevant_passages():
    report = measure(task_of("abcd", "ad"), {"1": {"a": 2.0, "b": 1.0}}, "m", "tuple")
    assert only(report, "AP") == 0.5


def test_ties_are_broken_by_the_order_of_the_passages_and_never_by_that_of_the_candidates():
    task = task_of("abcd", "d", candidates="dabc")
    report = measure(task, {"1": dict.fromkeys("dabc", 1.0)}, "m", "tuple")
    assert only(report, "RR") == 1 / 4
    assert ranked({"d": 1.0, "a": 1.0, "c": 2.0}, {"a": 0, "c": 1, "d": 2}) == ["c", "a", "d"]


def test_many_near_ties_keep_their_order():
    ids = [f"p{i:03}" for i in range(500)]
    scores = {id: 1000.0 - 1e-9 * place for place, id in enumerate(ids)}
    report = measure(task_of(reversed(ids), [ids[1]]), {"1": scores}, "m", "tuple")
    assert only(report, "RR") == 1 / 2


def test_queries_for_which_nothing_was_found_count_0(toy):
    report = measure(toy, {"1": {"a": 2.0, "c": 1.0}, "2": {}}, "m", "tuple")
    assert report.per_query["AP"] == {"1": 1.0, "2": 0.0}
    assert report.measures["AP"] == 0.5
    assert measure(toy, {"1": {"a": 2.0, "c": 1.0}}, "m", "tuple").per_query == report.per_query


def test_a_run_without_anything_is_all_0(toy):
    assert set(measure(toy, {"1": {}, "2": {}}, "m", "tuple").measures.values()) == {0.0}


def test_results_by_group(toy):
    report = measure(toy, {"1": {"a": 1.0}, "2": {"e": 1.0}}, "m", "tuple")
    assert report.by("aspect", "R@1") == {"x": (0.5, 1), "y": (1.0, 1)}
    assert report.by("colour", "R@1") == {}
    groups = {"aspect": {"1": "x", "2": "y", "3": "y"}}
    larger = Report("p", "m", "tuple", {"R@1": {"1": 0.0, "2": 1.0, "3": 0.0}}, groups)
    assert list(larger.by("aspect", "R@1").items()) == [("y", (0.5, 2)), ("x", (0.0, 1))]


def test_a_report_as_json(toy):
    found = measure(toy, {"1": {"a": 1.0}, "2": {}}, "bm25", "question").as_json()
    assert found | {"measures": 0} == {"protocol": "toy", "model": "bm25", "queries": "question", "measures": 0}
    assert tuple(found["measures"]) == MEASURES


def of_values(values):
    return Report("p", "m", "tuple", {"AP": {str(i): float(v) for i, v in enumerate(values)}}, {})


def test_the_interval_holds_the_mean_and_is_that_of_the_normal_distribution():
    values = np.random.default_rng(1).random(400)
    low, high = of_values(values).interval("AP")
    assert low < values.mean() < high
    error = values.std() / math.sqrt(len(values))
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.1)
    assert of_values(values).interval("AP") == (low, high)
    assert of_values([0.25] * 5).interval("AP") == (0.25, 0.25)


def test_identical_runs_do_not_differ():
    values = {str(i): i / 10 for i in range(10)}
    assert difference(values, dict(values)) == (0.0, 1.0)


def test_a_clear_difference_is_no_chance():
    better, worse = {str(i): 0.9 for i in range(50)}, {str(i): 0.1 for i in range(50)}
    gap, chance = difference(better, worse)
    assert gap == pytest.approx(0.8)
    assert chance == pytest.approx(1 / 10_001)
    assert difference(worse, better) == pytest.approx((-gap, chance))


def test_the_randomisation_test_is_that_of_scipy():
    draw = np.random.default_rng(3)
    one, other = draw.random(10) + 0.15, draw.random(10)

    def gap(a, b, axis):
        return (a - b).mean(axis=axis)

    exact = stats.permutation_test((one, other), gap, permutation_type="samples", vectorized=True, n_resamples=np.inf)
    found = difference(*({str(i): float(v) for i, v in enumerate(values)} for values in (one, other)))
    assert found[0] == pytest.approx(exact.statistic)
    assert found[1] == pytest.approx(exact.pvalue, abs=0.015)


def test_runs_of_different_queries_cannot_be_compared():
    with pytest.raises(CaprError, match=r"different queries\. Fix: "):
        difference({"1": 0.0}, {"2": 0.0})


@pytest.fixture
def run():
    return {"1": {"a": 0.5, "c": 0.5, "b": 0.7}, "2": {"d": -1.0, "e": -2.0}}


def test_a_run_in_trecs_format_gives_the_same_measures(toy, run, tmp_path):
    path = tmp_path / "bm25.run"
    write_run(run, toy, path, "my model")
    assert path.read_text().splitlines() == [
        "1 Q0 b 1 0.7 my%20model",
        "1 Q0 a 2 0.5 my%20model",
        "1 Q0 c 3 0.5 my%20model",
        "2 Q0 d 1 -1 my%20model",
        "2 Q0 e 2 -2 my%20model",
    ]
    assert list(tmp_path.iterdir()) == [path]
    read = read_run(path, toy)
    assert measure(toy, read, "m", "tuple") == measure(toy, run, "m", "tuple")


def test_ids_with_blanks_are_kept_apart(toy, run, tmp_path):
    names = {id: f"a note, {id} \u2028of:1" for id in toy.passages}
    asked = [replace(a, id=f"query\t{a.id} x", relevant=frozenset(names[id] for id in a.relevant)) for a in toy.asked]
    task = Task("t", {names[id]: text for id, text in toy.passages.items()}, asked)
    blanks = {f"query\t{query} x": {names[id]: s for id, s in scores.items()} for query, scores in run.items()}
    write_run(blanks, task, tmp_path / "run", "m")
    assert {len(line.split()) for line in (tmp_path / "run").read_text().splitlines()} == {6}
    assert measure(task, read_run(tmp_path / "run", task), "m", "tuple") == measure(task, blanks, "m", "tuple")


def test_what_is_relevant_in_trecs_format(toy, run, tmp_path):
    import ir_measures

    write_qrels(toy, tmp_path / "qrels")
    write_run(run, toy, tmp_path / "run", "m")
    assert (tmp_path / "qrels").read_text() == "1 0 a 1\n1 0 c 1\n2 0 e 1\n"
    wanted = [ir_measures.parse_measure(name) for name in ("R@1", "AP")]
    untied = {"1": {"a": 0.5, "c": 0.4, "b": 0.7}, "2": run["2"]}
    write_run(untied, toy, tmp_path / "run", "m")
    qrels = list(ir_measures.read_trec_qrels(str(tmp_path / "qrels")))
    found = ir_measures.calc_aggregate(wanted, qrels, list(ir_measures.read_trec_run(str(tmp_path / "run"))))
    ours = measure(toy, untied, "m", "tuple").measures
    assert {str(name): value for name, value in found.items()} == pytest.approx({n: ours[n] for n in ("R@1", "AP")})


@pytest.mark.parametrize(
    "line", ["9 Q0 a 1 0.5 m", "1 Q0 z 1 0.5 m", "1 Q0 a 1 0.5", "1 Q0 a 1 0.5 my model", "", '{"query": 1}']
)
def test_a_foreign_run_is_refused(toy, tmp_path, line):
    path = tmp_path / "other.run"
    path.write_text(f"1 Q0 a 1 0.5 m\n{line}\n")
    with pytest.raises(CaprError) as caught:
        read_run(path, toy)
    assert f"{path}, line 2: " in str(caught.value)
    assert "Fix: " in str(caught.value)

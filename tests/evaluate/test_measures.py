"""Compare measures with values computed by hand and by other programs."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from capr.documents import CaprError, Span
from capr.evaluate.measures import (
    MEASURES,
    Evaluation,
    difference,
    measure,
    read_run,
    write_qrels,
    write_run,
)
from capr.evaluate.scorers import ranked
from capr.evaluate.task import Task, TaskQuery


def value_of(report, measure, query="1"):
    return report.per_query[measure][query]


def make_task(passages, relevant, candidates=()):
    return Task(
        "t", dict.fromkeys(passages, ""), [TaskQuery("1", "e", "a", "", frozenset(relevant), tuple(candidates))]
    )


def run_of(order):
    return {"1": {id: float(len(order) - position) for position, id in enumerate(order)}}


def test_measures_of_several_relevant_passages_equal_hand_values():
    task = make_task("abcdef", "bdf")
    report = measure(task, run_of("abcdef"), "m", "tuple")
    assert value_of(report, "R@1") == 0
    assert value_of(report, "R@5") == pytest.approx(2 / 3)
    assert value_of(report, "R@10") == 1
    assert value_of(report, "AP") == pytest.approx((1 / 2 + 2 / 4 + 3 / 6) / 3)
    assert value_of(report, "RR") == pytest.approx(1 / 2)
    gain = 1 / math.log2(3) + 1 / math.log2(5) + 1 / math.log2(7)
    assert value_of(report, "nDCG@10") == pytest.approx(gain / (1 + 1 / math.log2(3) + 1 / 2))


def test_recall_is_the_share_of_relevant_passages():
    assert value_of(measure(make_task("abcd", "ab"), run_of("abcd"), "m", "tuple"), "R@1") == 0.5


def test_average_precision_is_over_all_relevant_passages():
    report = measure(make_task("abcd", "ad"), {"1": {"a": 2.0, "b": 1.0}}, "m", "tuple")
    assert value_of(report, "AP") == 0.5


def test_ties_keep_the_order_of_the_passages_not_of_the_candidates():
    task = make_task("abcd", "d", candidates="dabc")
    report = measure(task, {"1": dict.fromkeys("dabc", 1.0)}, "m", "tuple")
    assert value_of(report, "RR") == 1 / 4
    assert ranked({"d": 1.0, "a": 1.0, "c": 2.0}, {"a": 0, "c": 1, "d": 2}) == ["c", "a", "d"]


def test_many_near_ties_keep_their_order():
    ids = [f"p{i:03}" for i in range(500)]
    scores = {id: 1000.0 - 1e-9 * position for position, id in enumerate(ids)}
    report = measure(make_task(reversed(ids), [ids[1]]), {"1": scores}, "m", "tuple")
    assert value_of(report, "RR") == 1 / 2


def test_queries_without_results_count_0(toy):
    report = measure(toy, {"1": {"a": 2.0, "c": 1.0}, "2": {}}, "m", "tuple")
    assert report.per_query["AP"] == {"1": 1.0, "2": 0.0}
    assert report.measures["AP"] == 0.5
    assert measure(toy, {"1": {"a": 2.0, "c": 1.0}}, "m", "tuple").per_query == report.per_query


def test_an_empty_run_has_0_in_all_measures(toy):
    assert set(measure(toy, {"1": {}, "2": {}}, "m", "tuple").measures.values()) == {0.0}


def test_results_by_group(toy):
    report = measure(toy, {"1": {"a": 1.0}, "2": {"e": 1.0}}, "m", "tuple")
    assert report.by("aspect", "R@1") == {"x": (0.5, 1), "y": (1.0, 1)}
    assert report.by("colour", "R@1") == {}
    groups = {"aspect": {"1": "x", "2": "y", "3": "y"}}
    larger = Evaluation("p", "m", "tuple", {"R@1": {"1": 0.0, "2": 1.0, "3": 0.0}}, groups)
    assert list(larger.by("aspect", "R@1").items()) == [("y", (0.5, 2)), ("x", (0.0, 1))]


def test_a_report_as_json(toy):
    record = measure(toy, {"1": {"a": 1.0}, "2": {}}, "bm25", "question").as_json()
    assert record | {"measures": 0} == {"protocol": "toy", "model": "bm25", "queries": "question", "measures": 0}
    assert tuple(record["measures"]) == MEASURES


def evaluation_of(values):
    return Evaluation("p", "m", "tuple", {"AP": {str(i): float(v) for i, v in enumerate(values)}}, {})


def test_the_interval_has_the_width_of_the_normal_distribution():
    values = np.random.default_rng(1).random(400)
    low, high = evaluation_of(values).interval("AP")
    assert low < values.mean() < high
    error = values.std() / math.sqrt(len(values))
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.1)
    assert evaluation_of(values).interval("AP") == (low, high)
    assert evaluation_of([0.25] * 5).interval("AP") == (0.25, 0.25)


def test_identical_runs_do_not_differ():
    values = {str(i): i / 10 for i in range(10)}
    assert difference(values, dict(values)) == (0.0, 1.0)


def test_a_clear_difference_is_significant():
    better, worse = {str(i): 0.9 for i in range(50)}, {str(i): 0.1 for i in range(50)}
    gap, chance = difference(better, worse)
    assert gap == pytest.approx(0.8)
    assert chance == pytest.approx(1 / 10_001)
    assert difference(worse, better) == pytest.approx((-gap, chance))


def test_the_randomisation_test_agrees_with_scipy():
    rng = np.random.default_rng(3)
    first, second = rng.random(10) + 0.15, rng.random(10)

    def gap(a, b, axis):
        return (a - b).mean(axis=axis)

    exact = stats.permutation_test(
        (first, second), gap, permutation_type="samples", vectorized=True, n_resamples=np.inf
    )
    result = difference(*({str(i): float(v) for i, v in enumerate(values)} for values in (first, second)))
    assert result[0] == pytest.approx(exact.statistic)
    assert result[1] == pytest.approx(exact.pvalue, abs=0.015)


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
    queries = [
        replace(query, id=f"query\t{query.id} x", relevant=frozenset(names[id] for id in query.relevant))
        for query in toy.queries
    ]
    task = Task("t", {names[id]: text for id, text in toy.passages.items()}, queries)
    blanks = {f"query\t{query} x": {names[id]: s for id, s in scores.items()} for query, scores in run.items()}
    write_run(blanks, task, tmp_path / "run", "m")
    assert {len(line.split()) for line in (tmp_path / "run").read_text().splitlines()} == {6}
    assert measure(task, read_run(tmp_path / "run", task), "m", "tuple") == measure(task, blanks, "m", "tuple")


def test_qrels_in_trecs_format(toy, run, tmp_path):
    import ir_measures

    write_qrels(toy, tmp_path / "qrels")
    write_run(run, toy, tmp_path / "run", "m")
    assert (tmp_path / "qrels").read_text() == "1 0 a 1\n1 0 c 1\n2 0 e 1\n"
    measures = [ir_measures.parse_measure(name) for name in ("R@1", "AP")]
    untied = {"1": {"a": 0.5, "c": 0.4, "b": 0.7}, "2": run["2"]}
    write_run(untied, toy, tmp_path / "run", "m")
    qrels = list(ir_measures.read_trec_qrels(str(tmp_path / "qrels")))
    expected = ir_measures.calc_aggregate(measures, qrels, list(ir_measures.read_trec_run(str(tmp_path / "run"))))
    actual = measure(toy, untied, "m", "tuple").measures
    assert {str(name): value for name, value in expected.items()} == pytest.approx(
        {n: actual[n] for n in ("R@1", "AP")}
    )


@pytest.mark.parametrize(
    "line", ["9 Q0 a 1 0.5 m", "1 Q0 z 1 0.5 m", "1 Q0 a 1 0.5", "1 Q0 a 1 0.5 my model", "", '{"query": 1}']
)
def test_a_run_of_another_task_is_refused(toy, tmp_path, line):
    path = tmp_path / "other.run"
    path.write_text(f"1 Q0 a 1 0.5 m\n{line}\n")
    with pytest.raises(CaprError) as caught:
        read_run(path, toy)
    assert f"{path}, line 2: " in str(caught.value)
    assert "Fix: " in str(caught.value)


def test_higher_grades_count_more():
    query = TaskQuery("q", "", "", "What?", frozenset("ab"), ("a", "b", "c"), grades={"a": 1, "b": 3})
    task = Task("graded", dict.fromkeys("abc", ""), [query])
    assert [query.grade(id) for id in "abc"] == [1, 3, 0]
    best = measure(task, {"q": {"b": 3.0, "a": 2.0, "c": 1.0}}, "", "", ["nDCG@10", "RR"]).measures
    worse = measure(task, {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, "", "", ["nDCG@10", "RR"]).measures
    assert best == {"nDCG@10": pytest.approx(1), "RR": 1}
    assert worse == {"nDCG@10": pytest.approx((1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3))), "RR": 1}


def test_a_task_of_sentences():
    sentences = {"a": (Span(0, 9), Span(10, 29)), "b": (Span(0, 3),)}
    passages = {"a": "No fever. Cough since Monday.", "b": "Yes"}
    queries = [
        TaskQuery("q", "", "", "Cough?", frozenset("a"), ("a", "b"), sentences={"a": (Span(10, 29),)}),
        TaskQuery("r", "", "", "Rash?", frozenset("b"), ("a", "b")),
    ]
    task = Task("notes", passages, queries, sentences=sentences).of_sentences()
    assert task.passages == {"a[0:9]": "No fever.", "a[10:29]": "Cough since Monday.", "b[0:3]": "Yes"}
    (query,) = task.queries  # query r has no gold sentence
    assert (query.relevant, query.candidates) == ({"a[10:29]"}, ("a[0:9]", "a[10:29]", "b[0:3]"))
    assert measure(task, {"q": {"a[0:9]": 1.0, "a[10:29]": 2.0}}, "", "", ["R@1"]).measures == {"R@1": 1}

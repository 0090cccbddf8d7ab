"""Plots of results."""

from dataclasses import replace

import pytest

from capr.documents import CaprError
from capr.evaluate.measures import measure
from capr.evaluate.plots import RANKS, plot, recall

RUN = {"1": {"b": 3.0, "a": 2.0, "c": 2.0}, "2": {"d": 1.0}}


def test_recall_at_each_rank_equals_hand_values(toy):
    assert recall(toy, RUN, 4) == pytest.approx([0, 0.25, 0.5, 0.5])
    assert len(recall(toy, RUN)) == RANKS


def test_recall_agrees_with_the_measure(toy):
    measures = measure(toy, RUN, "m", "tuple").measures
    assert [recall(toy, RUN)[k - 1] for k in (1, 5, 10)] == pytest.approx([measures[f"R@{k}"] for k in (1, 5, 10)])


@pytest.mark.parametrize(("name", "begin"), [("a.png", b"\x89PNG"), ("a.SVG", b"<?xml"), ("a b.svg", b"<?xml")])
def test_pictures_are_written(toy, tmp_path, name, begin):
    reports = [(measure(toy, RUN, model, "tuple"), RUN) for model in ("bm25", "out/a_rather-long <name> & $more$")]
    plot(tmp_path / name, toy, reports)
    assert (tmp_path / name).read_bytes().startswith(begin)


def test_tasks_without_groups_have_one_plot(toy, tmp_path):
    ungrouped = replace(toy, queries=[replace(query, groups={}) for query in toy.queries])
    plot(tmp_path / "a.png", ungrouped, [(measure(ungrouped, RUN, "bm25", "tuple"), RUN)])
    assert (tmp_path / "a.png").stat().st_size > 1000


@pytest.mark.parametrize("name", ["a.jpg", "a.pdf", "a", "png"])
def test_other_formats_are_refused(toy, tmp_path, name):
    with pytest.raises(CaprError, match=r"is not a picture. Fix: .*\.png or \.svg"):
        plot(tmp_path / name, toy, [(measure(toy, RUN, "bm25", "tuple"), RUN)])
    assert not list(tmp_path.iterdir())

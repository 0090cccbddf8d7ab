"""Tests of runs of sentences, compared with an exhaustive search."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capr.documents import Span
from capr.runtime.sentence_runs import Run, answer, best_run, span_of


@given(st.lists(st.integers(0, 10), min_size=1, max_size=12), st.integers(0, 10))
def test_no_other_run_is_better(scores, threshold):
    run = best_run(scores, threshold)
    every = [(i, j) for i in range(len(scores)) for j in range(i + 1, len(scores) + 1)]
    assert run.score == max(sum(scores[i:j]) - threshold * (j - i) for i, j in every)
    assert run.score == sum(scores[run.first : run.last]) - threshold * (run.last - run.first)


def test_a_document_without_sentences_has_no_run():
    assert best_run([], 0.5) == Run(0, 0, 0.0)
    assert span_of([], best_run([], 0.5)) == Span(0, 0)


def test_the_threshold_of_an_answer_lies_between_the_mean_and_the_highest_score():
    scores = [0.1, 0.8, 0.4, 0.9, 0.1, 0.1]  # the mean is 0.4
    assert answer(scores, 0) == Run(1, 4, 0.7)
    assert answer(scores, 0.5) == Run(
        3, 4, 0.9
    )  # the threshold is 0.65, and the sentence between the two strong ones costs too much
    assert answer([*scores[:2], 0.6, *scores[3:]], 0.2) == Run(1, 4, 0.766667)


@given(st.lists(st.integers(0, 10), min_size=1, max_size=12), st.sampled_from([0, 0.25, 0.5, 1]))
def test_no_other_answer_exceeds_the_threshold_more(scores, share):
    run = answer(scores, share)
    mean = sum(scores) / len(scores)
    threshold = mean + share * (max(scores) - mean)
    every = [(i, j) for i in range(len(scores)) for j in range(i + 1, len(scores) + 1)]
    best = max(sum(scores[i:j]) - threshold * (j - i) for i, j in every)
    inside = scores[run.first : run.last]
    assert sum(inside) - threshold * len(inside) == pytest.approx(best, abs=1e-6)
    assert run.score == pytest.approx(sum(inside) / len(inside), abs=1e-6)
    assert run.score >= mean - 1e-6


def test_adding_a_constant_to_all_scores_changes_no_answer():
    scores = [0.125, 0.75, 0.5, 0.875, 0.125, 0.125]
    for constant in (-2, 0.5, 8):
        run = answer([score + constant for score in scores], 0.25)
        assert run[:2] == answer(scores, 0.25)[:2]
        assert run.score - constant == pytest.approx(answer(scores, 0.25).score)


def test_a_document_with_equal_scores_has_an_answer():
    assert answer([0.5], 0.5) == Run(0, 1, 0.5)
    assert answer([0.25, 0.25, 0.25], 0.5) == Run(0, 1, 0.25)
    assert answer([], 0.5) == Run(0, 0, 0.0)


def test_a_run_has_a_span_of_the_text():
    assert span_of([Span(0, 4), Span(5, 9), Span(12, 20)], Run(1, 3, 1.0)) == Span(5, 20)

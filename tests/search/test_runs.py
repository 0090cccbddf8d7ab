"""Runs of sentences, against trying all of them."""

from hypothesis import given
from hypothesis import strategies as st

from capr.documents import Span
from capr.search.runs import Run, best_run, span_of


@given(st.lists(st.integers(0, 10), min_size=1, max_size=12), st.integers(0, 10))
def test_no_other_run_is_better(scores, threshold):
    run = best_run(scores, threshold)
    every = [(i, j) for i in range(len(scores)) for j in range(i + 1, len(scores) + 1)]
    assert run.score == max(sum(scores[i:j]) - threshold * (j - i) for i, j in every)
    assert run.score == sum(scores[run.first : run.last]) - threshold * (run.last - run.first)


def test_a_document_without_sentences_has_no_run():
    assert best_run([], 0.5) == Run(0, 0, 0.0)
    assert span_of([], best_run([], 0.5)) == Span(0, 0)


def test_a_run_is_a_range_of_the_text():
    assert span_of([Span(0, 4), Span(5, 9), Span(12, 20)], Run(1, 3, 1.0)) == Span(5, 20)

"""SQuAD's measures of answers."""

import pytest

from capr.evaluate.overlap import best_exact, best_f1, exact, f1, normalised


@pytest.mark.parametrize(
    ("answer", "plain"),
    [
        ("The Norse leader, Rollo", "norse leader rollo"),
        ("A an the theory", "theory"),
        ("10th–11th  century", "10th–11th century"),  # only ASCII punctuation goes
        ("q.i.d.", "qid"),
        ("a.", ""),
    ],
)
def test_answers_are_normalised_as_by_the_official_script(answer, plain):
    assert normalised(answer) == plain


@pytest.mark.parametrize(
    ("one", "two", "same", "alike"),
    [
        ("aspirin", "Aspirin.", 1, 1),
        ("500 mg aspirin", "aspirin", 0, 0.5),
        ("mg mg", "mg", 0, 2 / 3),
        ("fever", "rash", 0, 0),
        ("the", "a", 1, 0),
    ],
)
def test_exact_match_and_f1(one, two, same, alike):
    assert exact(one, two) == exact(two, one) == same
    assert f1(one, two) == f1(two, one) == pytest.approx(alike)


def test_the_best_of_several_gold_answers_counts():
    assert best_f1("500 mg", ["aspirin", "500 mg daily"]) == pytest.approx(0.8)
    assert best_exact("500 mg", ["aspirin", "500 mg."]) == 1
    assert best_f1("500 mg", []) == best_exact("500 mg", []) == 0

"""SQuAD's measures and the calibration agree with values computed by hand."""

import pytest

from capr.measures.answers import calibration_error, exact_match, f1, normalised, reliability


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The Aspirin", "aspirin"),
        ("  an  81-mg   tablet. ", "81mg tablet"),
        ("q.6h.", "q6h"),
        ("Theory of a 'thing'", "theory of thing"),
        ("a an the", ""),
        ("50–60 °C", "50–60 °c"),  # only ASCII punctuation is removed
        ("", ""),
    ],
)
def test_answers_are_normalised(answer, expected):
    assert normalised(answer) == expected


@pytest.mark.parametrize(
    ("answer", "gold", "exact", "overlap"),
    [
        ("81 mg", ["81 mg"], 1, 1),
        ("The 81 mg.", ["81 MG"], 1, 1),
        ("81 mg daily", ["81 mg"], 0, 0.8),  # 2 of 3 and 2 of 2
        ("daily", ["81 mg"], 0, 0),
        ("mg mg", ["mg"], 0, 2 / 3),  # a word counts as often as it occurs
        ("aspirin 81 mg", ["ibuprofen", "81 mg daily", "aspirin"], 0, 2 / 3),
        ("", ["81 mg"], 0, 0),
        ("the", ["a"], 1, 0),  # both are empty after normalisation: equal, but without a common word
        ("81 mg", [], 0, 0),
    ],
)
def test_exact_match_and_f1_agree_with_values_computed_by_hand(answer, gold, exact, overlap):
    assert exact_match(answer, gold) == exact
    assert f1(answer, gold) == pytest.approx(overlap)


ANSWERS = [(0.95, True), (0.85, True), (0.82, False), (0.15, False), (1.0, True), (0.0, False)]


def test_answers_are_grouped_by_confidence():
    bins = reliability(ANSWERS)
    assert [(group.low, group.answers) for group in bins] == [(0.0, 1), (0.1, 1), (0.8, 2), (0.9, 2)]
    assert bins[2].confidence == pytest.approx(0.835)
    assert bins[2].right == 0.5
    assert bins[3].confidence == pytest.approx(0.975)


def test_the_calibration_error_agrees_with_a_value_computed_by_hand():
    expected = (1 * 0 + 1 * 0.15 + 2 * (0.835 - 0.5) + 2 * (1 - 0.975)) / 6
    assert calibration_error(ANSWERS) == pytest.approx(expected)
    assert calibration_error([]) == 0
    assert calibration_error([(1.0, True), (0.0, False)]) == 0

"""SQuAD's measures and calibration, against values computed by hand."""

import pytest

from capr.evaluate.answers import calibration_error, exact_match, f1, normalised, reliability


@pytest.mark.parametrize(
    ("answer", "form"),
    [
        ("The Aspirin", "aspirin"),
        ("  an  81-mg   tablet. ", "81mg tablet"),
        ("q.6h.", "q6h"),
        ("Theory of a 'thing'", "theory of thing"),
        ("a an the", ""),
        ("50–60 °C", "50–60 °c"),  # only ASCII punctuation goes
        ("", ""),
    ],
)
def test_the_form_in_which_answers_are_compared(answer, form):
    assert normalised(answer) == form


@pytest.mark.parametrize(
    ("answer", "gold", "exact", "overlap"),
    [
        ("81 mg", ["81 mg"], 1, 1),
        ("The 81 mg.", ["81 MG"], 1, 1),
        ("81 mg daily", ["81 mg"], 0, 0.8),  # 2 of 3 and 2 of 2
        ("daily", ["81 mg"], 0, 0),
        ("mg mg", ["mg"], 0, 2 / 3),  # a word counts as often as it stands
        ("aspirin 81 mg", ["ibuprofen", "81 mg daily", "aspirin"], 0, 2 / 3),
        ("", ["81 mg"], 0, 0),
        ("the", ["a"], 1, 0),  # nothing is left of either: the same, but no word in common
        ("81 mg", [], 0, 0),
    ],
)
def test_exact_match_and_f1(answer, gold, exact, overlap):
    assert exact_match(answer, gold) == exact
    assert f1(answer, gold) == pytest.approx(overlap)


ANSWERS = [(0.95, True), (0.85, True), (0.82, False), (0.15, False), (1.0, True), (0.0, False)]


def test_bins_by_confidence():
    bins = reliability(ANSWERS)
    assert [(one.low, one.answers) for one in bins] == [(0.0, 1), (0.1, 1), (0.8, 2), (0.9, 2)]
    assert bins[2].confidence == pytest.approx(0.835)
    assert bins[2].right == 0.5
    assert bins[3].confidence == pytest.approx(0.975)


def test_the_calibration_error_by_hand():
    by_hand = (1 * 0 + 1 * 0.15 + 2 * (0.835 - 0.5) + 2 * (1 - 0.975)) / 6
    assert calibration_error(ANSWERS) == pytest.approx(by_hand)
    assert calibration_error([]) == 0
    assert calibration_error([(1.0, True), (0.0, False)]) == 0

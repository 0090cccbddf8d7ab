import pytest
from hypothesis import given
from hypothesis import strategies as st

from capr.documents import Span
from capr.segment import uniform


def segment_lengths(size: int, target: int) -> list[int]:
    return [segment.end - segment.begin for segment in uniform("x" * size, target)]


@pytest.mark.parametrize(
    ("size", "target", "expected"),
    [
        (10, 3, [3, 3, 4]),  # p = round(3.33) = 3, r = round(3.33) = 3; the last segment takes the rest
        (100, 40, [50, 50]),  # p = round(2.5) = 2: half to even
        (140, 40, [35, 35, 35, 35]),  # p = round(3.5) = 4
        (11, 2, [2, 2, 2, 2, 2, 1]),  # p = round(5.5) = 6, r = round(1.83) = 2
        (5, 100, [5]),
        (0, 10, []),
    ],
)
def test_segments_have_the_lengths_of_the_paper(size, target, expected):
    assert segment_lengths(size, target) == expected


def test_a_border_inside_an_answer_moves_to_its_end():
    assert uniform("x" * 10, 5, [Span(3, 7)]) == [Span(0, 7), Span(7, 10)]
    assert uniform("x" * 10, 5, [Span(5, 7)]) == [Span(0, 5), Span(5, 10)]


def test_the_second_pass_catches_an_answer_that_a_moved_border_cuts():
    # The second answer moves the boundary into the first answer.
    answers = [Span(6, 9), Span(3, 7)]
    assert uniform("x" * 12, 6, answers) == [Span(0, 9), Span(9, 12)]


def test_a_length_below_one_is_an_error():
    with pytest.raises(ValueError, match="at least 1"):
        uniform("text", 0)


@given(st.integers(1, 200), st.integers(1, 60), st.data())
def test_no_answer_is_cut(size, length, data):
    points = sorted(set(data.draw(st.lists(st.integers(0, size), min_size=2, max_size=8))))
    answers = [Span(a, b) for a, b in zip(points[::2], points[1::2], strict=False)]
    borders = {segment.end for segment in uniform("x" * size, length, answers)}
    assert not any(answer.begin < border < answer.end for answer in answers for border in borders)

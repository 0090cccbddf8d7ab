"""Uniform ("naive") segmentation: pieces of about the same length, whatever the text says."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from capr.documents.document import Span


def uniform(text: str, length: int, answers: Sequence[Span] = ()) -> list[Span]:
    """Cuts a text into pieces of about `length` characters; together they are the text.

    With n characters there are p = max(1, round(n / length)) pieces of r = round(n / p) characters; the last takes the
    rest. `round` is Python's, half to even. A border that would cut an answer moves to the end of that answer.

    Args:
        text: any text.
        length: the average length wanted, in characters.
        answers: ranges that should not be cut. Each is looked at twice, as in the paper, since moving a border past
            one answer may cut another; answers that overlap can still be cut then.

    Reference: Lanz and Pecina, Paragraph Retrieval for Enhanced Question Answering in Clinical Documents, 2024.

    Example:
        >>> uniform("0123456789", 3)
        [Span(begin=0, end=3), Span(begin=3, end=6), Span(begin=6, end=10)]
        >>> uniform("0123456789", 3, answers=[Span(2, 5)])
        [Span(begin=0, end=5), Span(begin=5, end=6), Span(begin=6, end=10)]
    """
    if length < 1:
        raise ValueError(f"the length of a piece is {length}; it must be at least 1 character")
    size = len(text)
    if not size:
        return []
    pieces = max(1, round(size / length))
    step = round(size / pieces)
    borders = [min(i * step, size) for i in range(pieces)] + [size]
    for answer in (*answers, *answers):
        for i in range(pieces - 1):
            if borders[i] <= answer.begin < borders[i + 1] < answer.end:
                borders[i + 1] = answer.end
    # A border that moved far may have passed the next ones.
    for i in range(1, pieces + 1):
        borders[i] = max(borders[i], borders[i - 1])
    return [Span(begin, end) for begin, end in pairwise(borders) if begin < end]

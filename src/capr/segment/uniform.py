"""Uniform ("naive") segmentation: segments of about the same length, regardless of the content of the text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from capr.documents.document import Span


def uniform(text: str, length: int, answers: Sequence[Span] = ()) -> list[Span]:
    """Cut a text into segments of about `length` characters. Together the segments are the text.

    A text of n characters has p = max(1, round(n / length)) segments of r = round(n / p) characters; the last segment
    takes the rest. `round` is Python's, half to even. A boundary inside an answer moves to the end of that answer.

    Args:
        text: any text.
        length: the average length of a segment, in characters.
        answers: spans that should not be cut. As in the paper, the function checks each answer twice, because moving a
            boundary past one answer may cut another. Overlapping answers may still be cut.

    Returns:
        The spans of the segments, without empty ones.

    Reference: Lanz and Pecina, Paragraph Retrieval for Enhanced Question Answering in Clinical Documents, 2024.

    Example:
        >>> uniform("0123456789", 3)
        [Span(begin=0, end=3), Span(begin=3, end=6), Span(begin=6, end=10)]
        >>> uniform("0123456789", 3, answers=[Span(2, 5)])
        [Span(begin=0, end=5), Span(begin=5, end=6), Span(begin=6, end=10)]
    """
    if length < 1:
        raise ValueError(f"the length of a segment is {length}; it must be at least 1 character")
    size = len(text)
    if not size:
        return []
    count = max(1, round(size / length))
    step = round(size / count)
    borders = [min(i * step, size) for i in range(count)] + [size]
    for answer in (*answers, *answers):
        for i in range(count - 1):
            if borders[i] <= answer.begin < borders[i + 1] < answer.end:
                borders[i + 1] = answer.end
    # A boundary that moved far may have passed later boundaries.
    for i in range(1, count + 1):
        borders[i] = max(borders[i], borders[i - 1])
    return [Span(begin, end) for begin, end in pairwise(borders) if begin < end]

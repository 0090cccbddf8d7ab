"""Draw the curve of a document with characters, for a terminal of any width."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from capr.search import Curve

BLOCKS = " ▁▂▃▄▅▆▇█"
LABEL_WIDTH = 8  # columns
HEIGHT = 3  # lines of a curve
MAX_SENTENCE_WIDTH = 6  # columns
MIN_SCORE = 0.005  # smaller scores are printed as 0.00, and count as 0


def score_names(curve: Curve) -> list[str]:
    """Return the names of the scores of a query: one half, or both halves and their mean."""
    halves = [name for name in ("entity", "aspect") if getattr(curve, name)]
    return halves if len(halves) == 1 else ["entity", "aspect", "both"]


def lines(curve: Curve, width: int) -> Iterator[str]:
    """Yield the lines of a chart: a curve for each score, the beginnings of the sections, and the scale."""
    scores_by_name = {name: [getattr(sentence, name) for sentence in curve] for name in score_names(curve)}
    available = max(10, width - LABEL_WIDTH)
    sentence_width = max(1, min(MAX_SENTENCE_WIDTH, available // len(curve)))
    columns = min(available, sentence_width * len(curve))
    highest = max(max(scores) for scores in scores_by_name.values())
    for name, scores in scores_by_name.items():
        shares = [value / highest if highest >= MIN_SCORE else 0.0 for value in resample(scores, columns)]
        for line, bar_line in enumerate(bars(shares, HEIGHT)):
            yield f"{name if line == HEIGHT - 1 else '':{LABEL_WIDTH}}{bar_line}".rstrip()
        yield ""
    starts = curve.first_sentences()
    if starts:
        marks = [(position * columns // len(curve), str(number)) for number, (position, _) in enumerate(starts, 1)]
        yield f"{'section':{LABEL_WIDTH}}{_place_marks(marks, columns)}".rstrip()
        names = [" ".join(heading.split(" | ")[-1].split()) for _, heading in starts]
        legend = ", ".join(f"{number} {name}".replace(" ", "\xa0") for number, name in enumerate(names, 1))
        yield from _wrap(legend, width)
    column_content = "1 sentence" if columns >= len(curve) else f"the best of {len(curve) / columns:.1f} sentences"
    column_name = f"{sentence_width} columns" if sentence_width > 1 else "1 column"
    scale = f"█ = {highest:.2f}; no bar = 0 or less" if highest >= MIN_SCORE else "no score is above 0"
    yield from _wrap(f"{column_name} = {column_content}; {scale}", width)


def resample(values: Sequence[float], columns: int) -> list[float]:
    """Return a value for each column: the value of its sentence, or the largest of its sentences.

    >>> resample([1, 2, 3], 6), resample([1, 5, 3, 2], 2)
    ([1, 1, 2, 2, 3, 3], [5, 3])
    """
    count = len(values)
    resampled = []
    for column in range(columns):
        begin = column * count // columns
        end = max(begin + 1, (column + 1) * count // columns) if columns < count else begin + 1
        resampled.append(max(values[begin:end]))
    return resampled


def bars(shares: Sequence[float], height: int) -> list[str]:
    """Return the lines of bars from the top; a share of 1 fills the whole height.

    >>> bars([0, 0.25, 0.5, 1], 2)
    ['   █', ' ▄██']
    """
    levels = len(BLOCKS) - 1
    rows = []
    for line in reversed(range(height)):
        filled = (round(share * height * levels) - line * levels for share in shares)
        rows.append("".join(BLOCKS[max(0, min(levels, level))] for level in filled))
    return rows


def _wrap(text: str, width: int) -> Iterator[str]:
    """Yield the wrapped lines of a text under the curves; non-breaking blanks do not break."""
    for line in textwrap.wrap(text, width, initial_indent=" " * LABEL_WIDTH, subsequent_indent=" " * LABEL_WIDTH):
        yield line.replace("\xa0", " ")


def _place_marks(marks: Sequence[tuple[int, str]], columns: int) -> str:
    """Return a line with the numbers at their columns; numbers without space are left out."""
    line = ""
    for column, mark in marks:
        if column >= len(line) + bool(line) and column + len(mark) <= columns:
            line = line.ljust(column) + mark
    return line

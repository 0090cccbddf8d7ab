"""Curves over a document as a strip of characters, for a terminal of any width, with or without colour."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from capr.documents import Span
from capr.search import Curve

BLOCKS = " ▁▂▃▄▅▆▇█"
LABEL = 8  # columns before a curve
HEIGHT = 3  # lines of a curve
BROADEST = 6  # columns of a sentence, at most
LEAST = 0.005  # a smaller score is printed as 0.00, and is none


def asked(curve: Curve) -> list[str]:
    """The scores that a query asks for: of its one half; or of both halves, and last of both together."""
    halves = [name for name in ("entity", "aspect") if getattr(curve, name)]
    return halves if len(halves) == 1 else ["entity", "aspect", "both"]


def lines(curve: Curve, width: int) -> Iterator[str]:
    """The curves of what was asked for, above each other; then where sections begin, and what the heights mean."""
    rows = {name: [getattr(one, name) for one in curve] for name in asked(curve)}
    space = max(10, width - LABEL)
    broad = max(1, min(BROADEST, space // len(curve)))
    columns = min(space, broad * len(curve))
    highest = max(max(row) for row in rows.values())
    for name, row in rows.items():
        tops = [value / highest if highest >= LEAST else 0.0 for value in spread(row, columns)]
        for line, blocks in enumerate(bars(tops, HEIGHT)):
            yield f"{name if line == HEIGHT - 1 else '':{LABEL}}{blocks}".rstrip()
        yield ""
    starts = curve.first_sentences()
    if starts:
        marks = [(place * columns // len(curve), str(number)) for number, (place, _) in enumerate(starts, 1)]
        yield f"{'section':{LABEL}}{_marked(marks, columns)}".rstrip()
        names = [" ".join(heading.split(" | ")[-1].split()) for _, heading in starts]
        legend = ", ".join(f"{number} {name}".replace(" ", "\xa0") for number, name in enumerate(names, 1))
        yield from _wrapped(legend, width)
    each = "one sentence" if columns >= len(curve) else f"the best of {len(curve) / columns:.1f} sentences"
    broadly = f"{broad} columns" if broad > 1 else "a column"
    heights = f"█ is {highest:.2f}, no bar 0 or less" if highest >= LEAST else "no score is above 0"
    yield from _wrapped(f"{broadly}: {each}; {heights}", width)


def spread(values: Sequence[float], columns: int) -> list[float]:
    """A value for each column: that of its sentence, or the largest of its sentences.

    >>> spread([1, 2, 3], 6), spread([1, 5, 3, 2], 2)
    ([1, 1, 2, 2, 3, 3], [5, 3])
    """
    count = len(values)
    found = []
    for column in range(columns):
        begin = column * count // columns
        end = max(begin + 1, (column + 1) * count // columns) if columns < count else begin + 1
        found.append(max(values[begin:end]))
    return found


def bars(shares: Sequence[float], height: int) -> list[str]:
    """Bars of so many lines, the highest first; a share of 1 fills all of them.

    >>> bars([0, 0.25, 0.5, 1], 2)
    ['   █', ' ▄██']
    """
    levels = len(BLOCKS) - 1
    found = []
    for line in reversed(range(height)):
        filled = (round(share * height * levels) - line * levels for share in shares)
        found.append("".join(BLOCKS[max(0, min(levels, level))] for level in filled))
    return found


def place(span: Span) -> str:
    """A range of characters, as other commands write it."""
    return f"[{span.begin}, {span.end})"


def _wrapped(text: str, width: int) -> Iterator[str]:
    """Lines under the curves; at a blank that must not be broken, they are not."""
    for line in textwrap.wrap(text, width, initial_indent=" " * LABEL, subsequent_indent=" " * LABEL):
        yield line.replace("\xa0", " ")


def _marked(marks: Sequence[tuple[int, str]], columns: int) -> str:
    """Numbers at their columns; one that has no room is left out."""
    line = ""
    for column, mark in marks:
        if column >= len(line) + bool(line) and column + len(mark) <= columns:
            line = line.ljust(column) + mark
    return line

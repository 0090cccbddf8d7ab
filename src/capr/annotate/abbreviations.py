"""Abbreviations that a text defines: `acute kidney injury (AKI)`.

Reference: Schwartz and Hearst, A Simple Algorithm for Identifying Abbreviation Definitions in Biomedical Text, 2003.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from capr.documents import Span
from capr.text.names import abbreviation

SHORT = r"[^\W_][\w/&-]{1,9}"
IN_BRACKETS = re.compile(rf"\(\s*({SHORT})\s*(?=[);,])")
BEFORE_BRACKETS = re.compile(rf"(?<!\w)({SHORT}) \(([^()\n]{{3,120}})\)")
BORDER = re.compile(r"[.;:!?()\[\]]\s|\n\s*\n")  # no definition crosses it
LONGEST = 200  # characters of a long form


class Definition(NamedTuple):
    """An abbreviation and the span of its long form."""

    short: str
    long: Span


def definitions(text: str) -> Iterator[Definition]:
    """Yield the definitions of a text: `long form (LF)` in the order of the text, then `LF (long form)`.

    >>> text = "Treated for acute kidney injury (AKI) and a UTI (urinary tract infection)."
    >>> [(definition.short, definition.long.of(text)) for definition in definitions(text)]
    [('AKI', 'acute kidney injury'), ('UTI', 'urinary tract infection')]
    """
    for match in IN_BRACKETS.finditer(text):
        window = max(0, match.start() - LONGEST)
        window = max((border.end() for border in BORDER.finditer(text, window, match.start())), default=window)
        long = Span(window, match.start()).trimmed(text)
        if (begin := _begin(long.of(text), match[1])) is not None:
            yield Definition(abbreviation(match[1]), Span(long.begin + begin, long.end))
    for match in BEFORE_BRACKETS.finditer(text):
        long = Span(*match.span(2)).trimmed(text)
        if _begin(long.of(text), match[1]) == 0:
            yield Definition(abbreviation(match[1]), long)


def _begin(before: str, short: str) -> int | None:
    """Return where the long form of an abbreviation begins in the text before it, or None if there is no long form.

    The long form contains every letter of the abbreviation, matched from right to left; the first letter begins a word.
    """
    letters = [letter for letter in abbreviation(short).lower() if letter.isalnum()]
    if sum(map(str.isupper, short)) < 2 or len(letters) < 2:
        return None
    lowered = [letter.lower() for letter in before]  # as a list, because "İ" becomes two characters
    position = len(lowered)
    for number in range(len(letters) - 1, -1, -1):
        position -= 1
        while position >= 0 and not (
            lowered[position] == letters[number] and (number or position == 0 or not lowered[position - 1].isalnum())
        ):
            position -= 1
        if position < 0:
            return None
    words = len(before[position:].split())
    return position if words <= min(len(letters) + 5, 2 * len(letters)) else None

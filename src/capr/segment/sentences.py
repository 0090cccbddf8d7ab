"""Sentences in clinical text: abbreviations, doses, lists, headings, lines wrapped at any width, placeholders.

Two decisions make a sentence splitter. Does a line break end a sentence, or is the text only wrapped? And does a
period end one, or an abbreviation? The words that decide are data (abbreviations.tsv); the rest is form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import NamedTuple

from capr.documents.document import Span
from capr.documents.problem import CaprError
from capr.segment.headings import is_heading_line, lexicon

LINE_ENDS = "\r\n\f\v\x1c\x1d\x1e\x85\u2028\u2029"
LINE = re.compile(f"[^{LINE_ENDS}]+")
# A place where a sentence may end: final punctuation with what closes after it, before a blank or the end; or a period
# that lost the blank after it ("edema.No rash").
END = re.compile(r"[.!?…](?<![.!?…][.!?…])(?:[.!?…]*+[\"'”’)\]*]*+(?=\s|\Z)|(?<=[a-z)%\]]{2}[.!?])(?=[A-Z][a-z]))")
LIST_ITEM = re.compile(
    r"\s*(?:[-–—*•·●○▪+>]+(?=\s|[A-Za-z(\[])|\(?\d{1,3}[.)](?=\s)|\(?[a-z][.)]\s|\(?[A-H](?:\)\s|\.\s+(?=[A-Z]))|#)"
)
ROW = re.compile(r"\[\*\*[\d-]+\*\*\]|\d{1,4}[-/]\d{1,2}(?:[-/]\d{1,4})?\b|\d{1,2}:\d\d\b")  # dated rows of a table
NUMBER_MARK = re.compile(r"\(?(?:\d{1,2}|[a-zA-Z]|[IVX]{1,4}|#)")
LABELLED = re.compile(r"\s*(?P<label>[A-Za-z][A-Za-z0-9 /&,()'-]{0,40}):(?:\s|$)")
LONGEST_PLACEHOLDER = 100
CLOSING = "\"'”’)]*"
UNFINISHED = frozenset(
    "and or with of the a an to for in on at by from than that which who is was were are has had".split()
)
BEFORE_NAMES = frozenset("by with per to from and of for see".split())
COMPASS = frozenset("NSEW")
DOSING = re.compile(r"q\.[\d-]+(?:h|hr|hrs|min|d|wk)?")
INLINE_ITEM = re.compile(r"\d{1,2}[.)]\s")
WRAP_WIDTHS = range(55, 131)


class Abbreviations(NamedTuple):
    """Words before a period that need not end a sentence, without that period.

    Attributes:
        never: what they abbreviate needs the next word (`Dr.`).
        sometimes: they end a sentence if the next word begins like one (`b.i.d.`).
        unit: the same, after a number (`5 ft.`).
        label: words that a single letter may follow at the end of a sentence (`hepatitis C.`).
    """

    never: frozenset[str]
    sometimes: frozenset[str]
    unit: frozenset[str]
    label: frozenset[str]


@cache
def abbreviations() -> Abbreviations:
    """The table abbreviations.tsv."""
    kinds: dict[str, set[str]] = {kind: set() for kind in Abbreviations._fields}
    lines = files("capr.segment").joinpath("abbreviations.tsv").read_text("utf-8").splitlines()
    for number, line in enumerate(lines[1:], 2):
        word, _, kind = line.partition("\t")
        if kind not in kinds or word != word.lower().rstrip("."):
            raise CaprError(f"abbreviations.tsv, line {number}: {line!r} is not an abbreviation and its kind.")
        kinds[kind].add(word)
    return Abbreviations(**{kind: frozenset(words) for kind, words in kinds.items()})


@cache
def abbreviated_words() -> frozenset[str]:
    """All of them."""
    return frozenset().union(*abbreviations())


def sentences(text: str) -> list[Span]:
    """The sentences of a text in order, without the blanks around them; together they hold all that is not blank.

    A heading on a line of its own, a list item, a line of a table are sentences. A heading with text on its line
    belongs to the first sentence of that text.

    Args:
        text: any text.

    Example:
        >>> text = "Seen by Dr. Roe. Lasix 40 mg p.o. b.i.d.\\nNo fever."
        >>> [span.of(text) for span in sentences(text)]
        ['Seen by Dr. Roe.', 'Lasix 40 mg p.o. b.i.d.', 'No fever.']
    """
    found = []
    for start, block_end in _blocks(text):
        for stop in _ends(text, start, block_end):
            last = stop
            while last > start and text[last - 1].isspace():
                last -= 1
            while start < last and text[start].isspace():
                start += 1
            if start < last:
                found.append(Span(start, last))
            start = stop
    return found


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Runs of lines that only wrapping has broken."""
    lines = [match.span() for match in LINE.finditer(text) if not match[0].isspace()]
    if not lines:
        return
    width = _wrap_width(text, lines)
    start = lines[0][0]
    for line, following in pairwise(lines):
        if not _continues(text, start, line, following, width):
            yield start, line[1]
            start = following[0]
    yield start, lines[-1][1]


def _wrap_width(text: str, lines: list[tuple[int, int]]) -> int:
    """The column at which the text is wrapped; 0 if it is not.

    A line whose next begins in lower case was surely wrapped, and most of these come close to that column: their
    third quartile is a little below it, which leaves room for the odd line beyond.
    """
    lengths = sorted(
        end - begin
        for (begin, end), (next_begin, _) in pairwise(lines)
        if next_begin - end <= 2 and text[next_begin].islower()
    )
    if len(lengths) < 2:
        return 0
    width = lengths[len(lengths) * 3 // 4]
    return width if width in WRAP_WIDTHS else 0


def _continues(text: str, start: int, line: tuple[int, int], following: tuple[int, int], width: int) -> bool:
    """Whether the line break between two lines (with words) of the block that begins at `start` is only a wrap."""
    begin, end = line
    next_begin, next_end = following
    between = text[end:next_begin]
    if between.count("\n") > 1 or between.count("\r") > 1 or between.strip(" \t\r\n"):
        return False
    words, next_words = text[begin:end].strip(), text[next_begin:next_end].strip()
    if LIST_ITEM.match(next_words) or _is_labelled(next_words) or (ROW.match(words) and ROW.match(next_words)):
        return False
    length = end - begin
    full = bool(width) and length + 1 + len(next_words.split(None, 1)[0]) >= width
    bare = words.rstrip(CLOSING)
    if bare[-1:] in (".", "!", "?", "…"):
        if bare[:-1].split(" ")[-1].lstrip("([").lower() in abbreviations().never:
            return True
        wrapped = full or (not width and next_words[0].islower())
        at = text.index(words, begin) + len(bare) - 1
        return wrapped and not _ends_sentence(text, start, at, end, next_end)
    lower = next_words[0].islower()
    if words[-1] == ":":
        joins = full and lower
    elif (full and length <= width + 15) or _hangs(text, start, next_begin):
        joins = True
    elif lower:
        least = (width or 80) // 2 if words[0].isupper() or LIST_ITEM.match(words) else 55
        joins = length > least
    else:
        joins = (words[-1] == "," and length > 40) or (length > 25 and words.rsplit(None, 1)[-1] in UNFINISHED)
    return joins and not _is_short_heading(words) and not _is_short_heading(next_words)


def _hangs(text: str, start: int, line_begin: int) -> bool:
    """Whether a line is indented as far as the words of the list item that the block at `start` is."""
    if not text.startswith("  ", line_begin):
        return False
    item = LIST_ITEM.match(text, start)
    if item is None:
        return False
    hanging = item.end() - (text.rfind("\n", 0, start) + 1)
    return not text[line_begin : line_begin + hanging].strip()


def _is_short_heading(line: str) -> bool:
    return (line[-1] == ":" or line.count(" ") < 8) and len(line) <= 90 and is_heading_line(line)


def _is_labelled(line: str) -> bool:
    """Whether a line begins with a label and a colon, as a heading or a value does."""
    match = LABELLED.match(line) if ":" in line[:45] else None
    if match is None:
        return False
    label = match["label"]
    return label.isupper() or label.istitle() or label.lower() in lexicon()


def _ends(text: str, start: int, limit: int) -> list[int]:
    """Where the sentences of the block `[start, limit)` end; the end of the block is the last."""
    ends = []
    block = start
    known = abbreviated_words()
    marked = text.find("[**", start, limit) >= 0
    for match in END.finditer(text, start, limit):
        at, after = match.span()
        if after == limit:
            break
        if marked and _in_placeholder(text, block, at):
            continue
        low = max(start, at - 40)  # no abbreviation is longer
        word = text[max(low, text.rfind(" ", low, at) + 1) : at]
        # Most are plain: a word, a blank, a capital.
        plain = word.islower() and word.isalpha() and len(word) > 1 and text[after + 1 : after + 2].isupper()
        if (plain and word not in known) or _ends_sentence(text, start, at, after, limit):
            ends.append(after)
            start = after
    ends.append(limit)
    return ends


def _in_placeholder(text: str, block: int, at: int) -> bool:
    """Whether a character stands inside a de-identification mark such as `[**Dr. Last Name 12**]`."""
    opening = text.rfind("[**", max(block, at - LONGEST_PLACEHOLDER), at)
    if opening < 0 or text.find("**]", opening, at) >= 0:
        return False
    return text.find("**]", at, opening + LONGEST_PLACEHOLDER) >= 0


def _ends_sentence(text: str, start: int, at: int, after_at: int, limit: int) -> bool:
    """Whether the punctuation `[at, after_at)` ends the sentence that begins at `start`."""
    before = text[max(start, at - 40) : at]
    after = text[after_at : min(limit, after_at + 40)].lstrip()
    if not after or not before or before[-1].isspace():  # nothing before it: "a ? infection"
        return False
    first = after[0] if after[0].isalnum() else after.lstrip("\"'“‘([*")[:1]
    mark = text[at]
    if mark != "." or text.startswith("..", at):
        return (mark in "!?" and after_at - at == 1) or not first.islower()
    word = before.split()[-1]
    bracketed = word[0] in "([" and ")" in text[at:after_at]
    word = word.lstrip('(["“‘*_')
    rest = before[: len(before) - len(word)].rstrip('(["“‘*_ ')
    if (
        len(word) <= 5
        and NUMBER_MARK.fullmatch(word)
        and (rest[-1:] == ":" or (not rest.strip() and at - len(before) <= start))
    ):
        return False  # the mark of a list item
    if bracketed and ("." in word or word.lower() in abbreviations().sometimes):
        return False  # "(E.C.)"
    return not _is_abbreviation(word, (rest.split() or [""])[-1], after, first)


def _is_abbreviation(word: str, previous: str, after: str, first: str) -> bool:
    """Whether a period after `word` is only that of an abbreviation."""
    known = abbreviations()
    key = word.lower().rsplit("/", 1)[-1]
    if len(key) > 7 or key.isdigit():
        return False
    if key in known.never:
        return True
    if len(word) == 1 and word.isupper() and not previous[:1].isdigit():  # "J. Smith", "E. coli", not "hepatitis C."
        if previous.lower() in known.label:
            return False
        named = not previous or previous[-1] in ".:," or previous[0].isupper() or previous in BEFORE_NAMES
        return first.islower() or (first.isupper() and named)
    if word in COMPASS and previous[-1:].isdigit():  # "2200 N. Main St."
        return first.isupper()
    if key == "no":
        return first.isdigit() or first == "#"
    dotted = "." in key and (key.replace(".", "").isalpha() or DOSING.fullmatch(key) is not None)
    if key in known.sometimes or dotted or (key in known.unit and previous[-1:].isdigit()):
        next_word = after.split(None, 1)[0].lower().rstrip(".,;:)")
        if "." in key and "." in next_word and next_word in known.sometimes:
            return True
        return first.islower() or (first.isdigit() and not INLINE_ITEM.match(after)) or after[0] in ",;-/("
    return first in (",", ";")

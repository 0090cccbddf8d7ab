"""Sentences in clinical text, with its abbreviations, doses, lists, headings, wrapped lines and placeholders.

The splitter makes two decisions. Does a line break end a sentence, or only wrap the text? Does a period end a sentence,
or an abbreviation? The abbreviations are data (abbreviations.tsv); the code looks only at the form of the text.
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
# A possible end of a sentence: final punctuation with closing quotes and brackets, before white space or the end of the
# text; or a period without its space ("edema.No rash").
END = re.compile(r"[.!?…](?<![.!?…][.!?…])(?:[.!?…]*+[\"'”’)\]*]*+(?=\s|\Z)|(?<=[a-z)%\]]{2}[.!?])(?=[A-Z][a-z]))")
LIST_ITEM = re.compile(
    r"\s*(?:[-–—*•·●○▪+>]+(?=\s|[A-Za-z(\[])|\(?\d{1,3}[.)](?=\s)|\(?[a-z][.)]\s|\(?[A-H](?:\)\s|\.\s+(?=[A-Z]))|#)"
)
ROW = re.compile(r"\[\*\*[\d-]+\*\*\]|\d{1,4}[-/]\d{1,2}(?:[-/]\d{1,4})?\b|\d{1,2}:\d\d\b")  # the date of a table row
NUMBER_MARK = re.compile(r"\(?(?:\d{1,2}|[a-zA-Z]|[IVX]{1,4}|#)")
LABELLED = re.compile(r"\s*(?P<label>[A-Za-z][A-Za-z0-9 /&,()'-]{0,40}):(?:\s|$)")
MAX_PLACEHOLDER = 100
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
    """Words whose period need not end a sentence, without that period.

    Attributes:
        never: words that never end a sentence (`Dr.`).
        sometimes: words that end a sentence if the next word begins like a sentence (`b.i.d.`).
        unit: words that act like `sometimes` after a number (`5 ft.`).
        label: words after which a single letter may end a sentence (`hepatitis C.`).
    """

    never: frozenset[str]
    sometimes: frozenset[str]
    unit: frozenset[str]
    label: frozenset[str]


@cache
def abbreviations() -> Abbreviations:
    """Return the table abbreviations.tsv."""
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
    """Return the words of all four kinds."""
    return frozenset().union(*abbreviations())


def sentences(text: str) -> list[Span]:
    """Return the sentences of a text, without the white space around them.

    Together the sentences contain every character that is not white space. A heading on its own line, a list item and a
    row of a table also count as sentences. A heading with text on its line belongs to the first sentence of that text.

    Args:
        text: any text.

    Returns:
        The spans of the sentences in the order of the text.

    Example:
        >>> text = "Seen by Dr. Roe. Lasix 40 mg p.o. b.i.d.\\nNo fever."
        >>> [span.of(text) for span in sentences(text)]
        ['Seen by Dr. Roe.', 'Lasix 40 mg p.o. b.i.d.', 'No fever.']
    """
    spans = []
    for begin, block_end in _blocks(text):
        for sentence_end in _sentence_ends(text, begin, block_end):
            end = sentence_end
            while end > begin and text[end - 1].isspace():
                end -= 1
            while begin < end and text[begin].isspace():
                begin += 1
            if begin < end:
                spans.append(Span(begin, end))
            begin = sentence_end
    return spans


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the blocks of a text: runs of lines whose line breaks only wrap the text."""
    lines = [match.span() for match in LINE.finditer(text) if not match[0].isspace()]
    if not lines:
        return
    width = _wrap_width(text, lines)
    block_begin = lines[0][0]
    for line, next_line in pairwise(lines):
        if not _continues(text, block_begin, line, next_line, width):
            yield block_begin, line[1]
            block_begin = next_line[0]
    yield block_begin, lines[-1][1]


def _wrap_width(text: str, lines: list[tuple[int, int]]) -> int:
    """Estimate the column at which a text is wrapped. Return 0 for a text without wrapped lines.

    A line is surely wrapped if the next line begins in lower case. Most such lines end close to the column. Their third
    quartile lies a little below it, which leaves room for an occasional longer line.
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


def _continues(text: str, block_begin: int, line: tuple[int, int], next_line: tuple[int, int], width: int) -> bool:
    """Return whether the next line continues the block, so that the line break only wraps the text.

    Args:
        text: the whole text.
        block_begin: the offset at which the block of `line` begins.
        line: the span of a line with words.
        next_line: the span of the next line with words.
        width: the column at which the text is wrapped, or 0.
    """
    begin, end = line
    next_begin, next_end = next_line
    gap = text[end:next_begin]
    if gap.count("\n") > 1 or gap.count("\r") > 1 or gap.strip(" \t\r\n"):
        return False
    words, next_words = text[begin:end].strip(), text[next_begin:next_end].strip()
    if LIST_ITEM.match(next_words) or _is_labelled(next_words) or (ROW.match(words) and ROW.match(next_words)):
        return False
    length = end - begin
    is_full = bool(width) and length + 1 + len(next_words.split(None, 1)[0]) >= width
    unquoted_words = words.rstrip(CLOSING)
    if unquoted_words[-1:] in (".", "!", "?", "…"):
        if unquoted_words[:-1].split(" ")[-1].lstrip("([").lower() in abbreviations().never:
            return True
        is_wrapped = is_full or (not width and next_words[0].islower())
        mark = text.index(words, begin) + len(unquoted_words) - 1
        return is_wrapped and not _ends_sentence(text, block_begin, mark, end, next_end)
    next_is_lower = next_words[0].islower()
    if words[-1] == ":":
        continues = is_full and next_is_lower
    elif (is_full and length <= width + 15) or _hangs(text, block_begin, next_begin):
        continues = True
    elif next_is_lower:
        min_length = (width or 80) // 2 if words[0].isupper() or LIST_ITEM.match(words) else 55
        continues = length > min_length
    else:
        continues = (words[-1] == "," and length > 40) or (length > 25 and words.rsplit(None, 1)[-1] in UNFINISHED)
    return continues and not _is_short_heading(words) and not _is_short_heading(next_words)


def _hangs(text: str, block_begin: int, line_begin: int) -> bool:
    """Return whether a line is indented as far as the words of the list item that begins the block."""
    if not text.startswith("  ", line_begin):
        return False
    item = LIST_ITEM.match(text, block_begin)
    if item is None:
        return False
    indent = item.end() - (text.rfind("\n", 0, block_begin) + 1)
    return not text[line_begin : line_begin + indent].strip()


def _is_short_heading(line: str) -> bool:
    return (line[-1] == ":" or line.count(" ") < 8) and len(line) <= 90 and is_heading_line(line)


def _is_labelled(line: str) -> bool:
    """Return whether a line begins with a label and a colon, as headings and values do."""
    match = LABELLED.match(line) if ":" in line[:45] else None
    if match is None:
        return False
    label = match["label"]
    return label.isupper() or label.istitle() or label.lower() in lexicon()


def _sentence_ends(text: str, block_begin: int, block_end: int) -> list[int]:
    """Return the ends of the sentences in a block. The last one is the end of the block."""
    ends = []
    begin = block_begin
    abbreviated = abbreviated_words()
    has_placeholders = text.find("[**", begin, block_end) >= 0
    for match in END.finditer(text, begin, block_end):
        mark, mark_end = match.span()
        if mark_end == block_end:
            break
        if has_placeholders and _in_placeholder(text, block_begin, mark):
            continue
        search_begin = max(begin, mark - 40)  # no abbreviation is longer
        word = text[max(search_begin, text.rfind(" ", search_begin, mark) + 1) : mark]
        # A fast check for most sentences: a word in lower case, a space, a capital.
        is_plain = word.islower() and word.isalpha() and len(word) > 1 and text[mark_end + 1 : mark_end + 2].isupper()
        if (is_plain and word not in abbreviated) or _ends_sentence(text, begin, mark, mark_end, block_end):
            ends.append(mark_end)
            begin = mark_end
    ends.append(block_end)
    return ends


def _in_placeholder(text: str, block_begin: int, offset: int) -> bool:
    """Return whether an offset lies inside a de-identification mark such as `[**Dr. Last Name 12**]`."""
    opening = text.rfind("[**", max(block_begin, offset - MAX_PLACEHOLDER), offset)
    if opening < 0 or text.find("**]", opening, offset) >= 0:
        return False
    return text.find("**]", offset, opening + MAX_PLACEHOLDER) >= 0


def _ends_sentence(text: str, begin: int, mark: int, mark_end: int, block_end: int) -> bool:
    """Return whether the punctuation `[mark, mark_end)` ends the sentence that begins at `begin`."""
    before = text[max(begin, mark - 40) : mark]
    after = text[mark_end : min(block_end, mark_end + 40)].lstrip()
    if not after or not before or before[-1].isspace():  # a mark without a word before it: "a ? infection"
        return False
    next_letter = after[0] if after[0].isalnum() else after.lstrip("\"'“‘([*")[:1]
    if text[mark] != "." or text.startswith("..", mark):
        return (text[mark] in "!?" and mark_end - mark == 1) or not next_letter.islower()
    word = before.split()[-1]
    in_brackets = word[0] in "([" and ")" in text[mark:mark_end]
    word = word.lstrip('(["“‘*_')
    words_before = before[: len(before) - len(word)].rstrip('(["“‘*_ ')
    if (
        len(word) <= 5
        and NUMBER_MARK.fullmatch(word)
        and (words_before[-1:] == ":" or (not words_before.strip() and mark - len(before) <= begin))
    ):
        return False  # the number of a list item
    if in_brackets and ("." in word or word.lower() in abbreviations().sometimes):
        return False  # "(E.C.)"
    return not _is_abbreviation(word, (words_before.split() or [""])[-1], after, next_letter)


def _is_abbreviation(word: str, previous: str, after: str, next_letter: str) -> bool:
    """Return whether the period after a word belongs to an abbreviation and does not end the sentence.

    Args:
        word: the word before the period.
        previous: the word before `word`, or an empty string.
        after: the text after the period, without leading white space.
        next_letter: the first letter or digit of `after`.
    """
    table = abbreviations()
    key = word.lower().rsplit("/", 1)[-1]
    if len(key) > 7 or key.isdigit():
        return False
    if key in table.never:
        return True
    if len(word) == 1 and word.isupper() and not previous[:1].isdigit():  # "J. Smith", "E. coli", not "hepatitis C."
        if previous.lower() in table.label:
            return False
        may_be_name = not previous or previous[-1] in ".:," or previous[0].isupper() or previous in BEFORE_NAMES
        return next_letter.islower() or (next_letter.isupper() and may_be_name)
    if word in COMPASS and previous[-1:].isdigit():  # "2200 N. Main St."
        return next_letter.isupper()
    if key == "no":
        return next_letter.isdigit() or next_letter == "#"
    is_dotted = "." in key and (key.replace(".", "").isalpha() or DOSING.fullmatch(key) is not None)
    if key in table.sometimes or is_dotted or (key in table.unit and previous[-1:].isdigit()):
        next_word = after.split(None, 1)[0].lower().rstrip(".,;:)")
        if "." in key and "." in next_word and next_word in table.sometimes:
            return True
        return next_letter.islower() or (next_letter.isdigit() and not INLINE_ITEM.match(after)) or after[0] in ",;-/("
    return next_letter in (",", ";")

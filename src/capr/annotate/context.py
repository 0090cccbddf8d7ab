"""Context: is a finding negated, uncertain, hypothetical, in the past, or somebody else's?

ConText (Harkema, Dowling, Thornblade and Chapman 2009): cues open a scope, before or after them, that ends with the
sentence or at a terminating word; what stands in the scope has the cue's property. The cues are data (context.tsv).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

from capr.annotate.aspects import aspect_of
from capr.documents import CaprError, Span
from capr.segment import sentences

FLAGS = ("negated", "possible", "hypothetical", "historical", "family")
SCOPES = {
    "stop": ("all", *FLAGS),
    "none": ("",),
    **dict.fromkeys(FLAGS, ("forward", "near", "backward", "item", "both")),
}
# Headings that say it for everything under them, until a sentence speaks of the patient.
BY_ASPECT = {"family history": "family", "past medical history": "historical", "past surgical history": "historical"}
OPPOSITE = {"negated": "possible", "possible": "negated"}
NEXT_WORDS = re.compile(r"(?:\W*\w+){0,8}")  # as far as a cue reaches whose scope is near
LIST = re.compile(r"\{[a-z_]+\}")  # in a pattern: a list of words by its name
PATTERN_SIGN = re.compile(r"\\.|\[(?:\\.|[^]\\])*\]|[(|)]")  # in a pattern: what is quoted, a class, a bracket, a bar
ENDS_IN_WORD = re.compile(r"[\w)?*+.}]$")
ENDS_IN_LOOK = re.compile(r"\(\?[=!][^)]*\)\)*$")
FAR = 1000  # characters; in a longer sentence, as tables without periods are, a cue reaches no farther
START = re.compile(r"(?<![\w-])[a-z]|[^a-z]", re.IGNORECASE)  # where a cue may begin
OF_THE_PATIENT = re.compile(r"\b(?:the )?(?:patient|pt|she|he)\b", re.IGNORECASE)


class Rule(NamedTuple):
    """A row of the table: a pattern, what it means, and where its scope lies (for a stop, whose it ends)."""

    pattern: str
    flag: str
    scope: str


@dataclass(frozen=True, slots=True)
class Cue:
    """Why a mention has a property: the words of the cue and the range in which they hold.

    `span` is None where a section's heading is the cue.
    """

    flag: str
    words: str
    span: Span | None
    scope: Span


@cache
def rules() -> tuple[Rule, ...]:
    """The table context.tsv."""
    return tuple(read_rules(files("capr.annotate").joinpath("context.tsv").read_text("utf-8"), "context.tsv"))


def read_rules(table: str, file: str) -> Iterator[Rule]:
    """The rules of a table, with its names for lists of words ({relative}) written out."""
    names: dict[str, str] = {}
    for number, line in enumerate(table.splitlines()[1:], 2):
        columns = line.split("\t")
        if len(columns) == 3 and columns[1] == "words":
            names[f"{{{columns[2]}}}"] = f"(?:{columns[0]})"
            continue
        if len(columns) != 3 or columns[2] not in SCOPES.get(columns[1], ()):
            fix = f"write a pattern, one of words, {', '.join(SCOPES)}, and its scope, with tabs between"
            raise CaprError(f"{file}, line {number}: {line[:60]!r} is not a rule. Fix: {fix}.")
        for name in LIST.findall(columns[0]):
            if name not in names:
                fix = "write it above, as its words, `words` and its name"
                raise CaprError(f"{file}, line {number}: there is no list {name}. Fix: {fix}.")
        pattern = LIST.sub(lambda name: names[name[0]], columns[0])
        try:
            groups = re.compile(pattern).groups
        except re.error as error:
            fix = "write a regular expression; \\ before a sign means the sign itself"
            raise CaprError(f"{file}, line {number}: {columns[0]!r} is no pattern ({error}). Fix: {fix}.") from error
        if groups:
            raise CaprError(f"{file}, line {number}: {columns[0]!r} has a group. Fix: write (?: for (.")
        yield Rule(pattern, columns[1], columns[2])


Match = tuple[re.Match[str], tuple[Rule, ...]]  # where a pattern matches, and what it means


class Matcher(NamedTuple):
    """The patterns that begin with one letter, in one expression, and the rules of each of its groups."""

    pattern: re.Pattern[str]
    rules: tuple[tuple[Rule, ...], ...]


@cache
def _matchers() -> dict[str, Matcher]:
    """By first letter, and under "" for what begins with none; first the patterns of no meaning, then the longest.

    One expression for all of them would be five times slower: Python's cost grows with the number of groups.
    """
    by_pattern: dict[str, list[Rule]] = {}
    for rule in rules():
        by_pattern.setdefault(rule.pattern, []).append(rule)
    ordered = sorted(by_pattern, key=lambda p: (by_pattern[p][0].flag == "none", len(p)), reverse=True)
    by_letter: dict[str, list[tuple[str, str]]] = {}
    for pattern in ordered:
        for letter, part in _by_first_letter(f"(?:{pattern})").items():
            by_letter.setdefault(letter, []).append((part, pattern))
    return {
        letter: Matcher(re.compile(_either(parts), re.IGNORECASE), tuple(tuple(by_pattern[p]) for _, p in parts))
        for letter, parts in by_letter.items()
    }


def _by_first_letter(pattern: str) -> dict[str, str]:
    """A pattern cut into the parts that begin with each letter, and under "" that begin with anything else."""
    if not pattern.startswith("(?:"):
        return {pattern[0] if pattern[:1].isalpha() else "": pattern}
    choices: dict[str, list[str]] = {}
    depth, begin = 0, len("(?:")
    for sign in PATTERN_SIGN.finditer(pattern):
        depth += {"(": 1, ")": -1}.get(sign[0], 0)
        if (depth == 1 and sign[0] == "|") or depth == 0:
            for letter, part in _by_first_letter(pattern[begin : sign.start()]).items():
                choices.setdefault(letter, []).append(part)
            begin = sign.end()
        if depth == 0:
            break
    group, rest = pattern[:begin], pattern[begin:]
    often, rest = (rest[0], rest[1:]) if rest[:1] in ("?", "*") else ("", rest)
    again = f"{group}*" if often == "*" else ""
    found = {letter: f"(?:{'|'.join(parts)}){again}{rest}" for letter, parts in choices.items()}
    for letter, part in _by_first_letter(rest).items() if often else ():
        found[letter] = f"(?:{found[letter]}|{part})" if letter in found else part
    return found


def _either(parts: Sequence[tuple[str, str]]) -> str:
    """Each part of a pattern a group; one that ends with a word ends where the word ends."""
    ends = (r"(?!\w)" if ENDS_IN_WORD.search(p) and not ENDS_IN_LOOK.search(p) else "" for _, p in parts)
    return "|".join(f"((?:{part}){end})" for (part, _), end in zip(parts, ends, strict=True))


def context(text: str, target: Span, heading: str | None = None, sentence: Span | None = None) -> dict[str, Cue]:
    """The properties of what stands at `target`, each with the cue that gives it.

    Args:
        text: the text around it; only its own sentence counts.
        target: a range of the text, such as a mention.
        heading: of the section that it stands in.
        sentence: that it stands in, where the caller knows it.

    Returns:
        A cue for each flag that holds, of `FLAGS`.

    Example:
        >>> found = context("Denies fever, chills or cough.", Span(24, 29))
        >>> {flag: cue.words for flag, cue in found.items()}
        {'negated': 'Denies'}
    """
    if sentence is None:
        sentence = next((s for s in sentences(text) if s.begin <= target.begin < s.end), Span(0, len(text)))
    found: dict[str, Cue] = {}
    for cue in cues(text, _around(sentence, target), target):
        if cue.scope.begin <= target.begin and target.end <= cue.scope.end:
            found.setdefault(cue.flag, cue)
    flag = BY_ASPECT.get(aspect_of(heading)) if heading else None
    if flag and flag not in found:
        before = _around(sentence, target).begin
        if flag != "family" or not OF_THE_PATIENT.search(text, before, target.begin):
            found[flag] = Cue(flag, heading or "", None, sentence)
    return found


def _around(sentence: Span, target: Span) -> Span:
    """The part of a very long sentence that may bear on the target; the same for targets that stand close together."""
    begin = sentence.begin + (target.begin - sentence.begin) // FAR * FAR
    return Span(max(sentence.begin, begin - FAR), min(sentence.end, max(begin + 2 * FAR, target.end)))


def cues(text: str, sentence: Span, target: Span) -> Iterable[Cue]:
    """The cues of a sentence with their scopes; words inside the target itself are none."""
    matches, found = _in_sentence(text, sentence)
    if any(match.end() > target.begin and match.start() < target.end for match, _ in matches):
        return list(_scoped(text, sentence, list(_outside(text, matches, target))))
    return found


@lru_cache(maxsize=1)  # the mentions of a sentence are asked for one after the other
def _in_sentence(text: str, sentence: Span) -> tuple[list[Match], list[Cue]]:
    matches = list(_search(text, *sentence))
    return matches, list(_scoped(text, sentence, matches))


def _outside(text: str, matches: Iterable[Match], target: Span) -> Iterator[Match]:
    """The matches outside the target; where one reaches into it, those in the words that it has before the target."""
    for match, meant in matches:
        if match.end() <= target.begin or match.start() >= target.end:
            yield match, meant
        elif match.start() < target.begin:
            yield from _search(text, match.start(), target.begin)


def _search(text: str, begin: int, end: int) -> Iterator[Match]:
    """All matches in a range, from left to right, without overlaps."""
    matchers = _matchers()
    for start in START.finditer(text, begin, end):
        if start.start() >= begin:
            matcher = matchers.get(start[0].lower() if start[0].isalpha() else "")
            if matcher and (match := matcher.pattern.match(text, start.start(), end)) and match[0]:
                begin = match.end()
                yield match, matcher.rules[(match.lastindex or 1) - 1]


def _scoped(text: str, sentence: Span, matches: Sequence[Match]) -> Iterator[Cue]:
    """The cues among the matches; a scope ends where the sentence does, or at the nearest words that stop its flag.

    What is uncertain ends what is absent, and the other way round ("no mass, possible cyst").
    """
    ends = {flag: [sentence.begin, *(m.end() for m, meant in matches if _stops(meant, flag))] for flag in FLAGS}
    starts = {
        flag: [
            *(m.start() for m, meant in matches if _stops(meant, flag) or _is(meant, OPPOSITE.get(flag))),
            sentence.end,
        ]
        for flag in FLAGS
    }
    for match, meant in matches:
        for rule in meant:
            if rule.flag in ("none", "stop"):
                continue
            before = ends[rule.flag][bisect_right(ends[rule.flag], match.start()) - 1]
            after = starts[rule.flag][bisect_left(starts[rule.flag], match.end())]
            span = Span(*match.span())
            if rule.scope == "near":
                words = NEXT_WORDS.match(text, match.end(), after)
                yield Cue(rule.flag, match[0], span, Span(match.end(), words.end() if words else after))
            if rule.scope == "item":  # back to the last comma
                comma = text.rfind(",", before, match.start()) + 1
                yield Cue(rule.flag, match[0], span, Span(max(before, comma), match.start()))
            if rule.scope in ("forward", "both"):
                yield Cue(rule.flag, match[0], span, Span(match.end(), after))
            if rule.scope in ("backward", "both"):
                yield Cue(rule.flag, match[0], span, Span(before, match.start()))


def _stops(meant: Iterable[Rule], flag: str) -> bool:
    return any(rule.flag == "stop" and rule.scope in ("all", flag) for rule in meant)


def _is(meant: Iterable[Rule], flag: str | None) -> bool:
    return any(rule.flag == flag for rule in meant)

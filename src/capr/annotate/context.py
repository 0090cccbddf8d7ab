"""Context: is a finding negated, uncertain, hypothetical, in the past, or somebody else's?

ConText (Harkema, Dowling, Thornblade and Chapman 2009): a cue opens a scope before or after it, which ends with the
sentence or at a terminating word. A mention in the scope has the property of the cue. The cues are data (context.tsv).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from capr.documents import CaprError, Span
from capr.segment import sentences
from capr.segment.aspects import aspect_of

FLAGS = ("negated", "possible", "hypothetical", "historical", "family")
SCOPES = {
    "stop": ("all", *FLAGS),
    "none": ("",),
    **dict.fromkeys(FLAGS, ("forward", "near", "backward", "item", "both")),
}
# Aspects that give the context of their whole section (family history only until the sentence names the patient).
BY_ASPECT = {"family history": "family", "past medical history": "historical", "past surgical history": "historical"}
OPPOSITE = {"negated": "possible", "possible": "negated"}
NEXT_WORDS = re.compile(r"(?:\W*\w+){0,8}")  # the scope of a cue with scope `near`
LIST = re.compile(r"\{[a-z_]+\}")  # the name of a list of words in a pattern
PATTERN_SIGN = re.compile(r"\\.|\[(?:\\.|[^]\\])*\]|[(|)]")  # an escape, a class, a bracket or a bar in a pattern
ENDS_IN_WORD = re.compile(r"[\w)?*+.}]$")
ENDS_IN_LOOK = re.compile(r"\(\?[=!][^)]*\)\)*$")
FAR = 1000  # characters to which a scope is limited in long sentences, such as tables without periods
START = re.compile(r"(?<![\w-])[a-z]|[^a-z]", re.IGNORECASE)  # where a cue may begin
OF_THE_PATIENT = re.compile(r"\b(?:the )?(?:patient|pt|she|he)\b", re.IGNORECASE)


class Rule(NamedTuple):
    """A row of the table: a pattern, its flag and its scope; for a stop, the flag whose scope it ends."""

    pattern: str
    flag: str
    scope: str


@dataclass(frozen=True, slots=True)
class Cue:
    """The words that give a mention a property, and their scope.

    `span` is None if the cue is the heading of the section.
    """

    flag: str
    words: str
    span: Span | None
    scope: Span


def cues_as_json(context: Mapping[str, Cue]) -> dict[str, Any]:
    """Return the words and span of the cue of every property; the span is null if the cue is a heading."""
    return {
        flag: {"text": cue.words, "begin": cue.span and cue.span.begin, "end": cue.span and cue.span.end}
        for flag, cue in context.items()
    }


@cache
def rules() -> tuple[Rule, ...]:
    """Return the rules of context.tsv."""
    return tuple(read_rules(files("capr.annotate").joinpath("context.tsv").read_text("utf-8"), "context.tsv"))


def read_rules(table: str, file: str) -> Iterator[Rule]:
    """Yield the rules of a table, with its lists of words such as {relative} expanded."""
    names: dict[str, str] = {}
    for number, line in enumerate(table.splitlines()[1:], 2):
        columns = line.split("\t")
        if len(columns) == 3 and columns[1] == "words":
            names[f"{{{columns[2]}}}"] = f"(?:{columns[0]})"
            continue
        if len(columns) != 3 or columns[2] not in SCOPES.get(columns[1], ()):
            fix = f"write a pattern, one of words, {', '.join(SCOPES)}, and a scope, separated by tabs"
            raise CaprError(f"{file}, line {number}: {line[:60]!r} is not a rule. Fix: {fix}.")
        for name in LIST.findall(columns[0]):
            if name not in names:
                fix = "write it above: its words, `words` and its name, separated by tabs"
                raise CaprError(f"{file}, line {number}: there is no list {name}. Fix: {fix}.")
        pattern = LIST.sub(lambda name: names[name[0]], columns[0])
        try:
            groups = re.compile(pattern).groups
        except re.error as error:
            fix = "write a regular expression; put \\ before a special character to match it literally"
            raise CaprError(f"{file}, line {number}: {columns[0]!r} is not a pattern ({error}). Fix: {fix}.") from error
        if groups:
            raise CaprError(f"{file}, line {number}: {columns[0]!r} has a group. Fix: write (?: for (.")
        yield Rule(pattern, columns[1], columns[2])


Match = tuple[re.Match[str], tuple[Rule, ...]]  # a match of a pattern, and the rules with that pattern


class Matcher(NamedTuple):
    """One expression for the patterns that begin with a letter, and the rules of each of its groups."""

    pattern: re.Pattern[str]
    rules: tuple[tuple[Rule, ...], ...]


@cache
def _matchers() -> dict[str, Matcher]:
    """Return a matcher for each first letter, and under "" for patterns that do not begin with a letter.

    Patterns with the flag `none` come first, then longer patterns. One expression for all patterns would be five times
    slower, because matching takes longer with every group.
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
    """Split a pattern into one part for each first letter, and under "" for any other first character."""
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
    quantifier, rest = (rest[0], rest[1:]) if rest[:1] in ("?", "*") else ("", rest)
    repeats = f"{group}*" if quantifier == "*" else ""
    split = {letter: f"(?:{'|'.join(parts)}){repeats}{rest}" for letter, parts in choices.items()}
    for letter, part in _by_first_letter(rest).items() if quantifier else ():  # the pattern may begin after the group
        split[letter] = f"(?:{split[letter]}|{part})" if letter in split else part
    return split


def _either(parts: Sequence[tuple[str, str]]) -> str:
    """Return an expression with a group for each part; a part that ends in a word matches only whole words."""
    ends = (r"(?!\w)" if ENDS_IN_WORD.search(p) and not ENDS_IN_LOOK.search(p) else "" for _, p in parts)
    return "|".join(f"((?:{part}){end})" for (part, _), end in zip(parts, ends, strict=True))


def context(text: str, target: Span, heading: str | None = None, sentence: Span | None = None) -> dict[str, Cue]:
    """Return the properties of a span, each with its cue.

    Args:
        text: the text with the span; only the sentence of the span counts.
        target: a span of the text, such as a mention.
        heading: the heading of its section.
        sentence: its sentence, if the caller knows it.

    Returns:
        A cue for each flag of `FLAGS` that the span has.

    Example:
        >>> properties = context("Denies fever, chills or cough.", Span(24, 29))
        >>> {flag: cue.words for flag, cue in properties.items()}
        {'negated': 'Denies'}
    """
    if sentence is None:
        sentence = next((s for s in sentences(text) if s.begin <= target.begin < s.end), Span(0, len(text)))
    properties: dict[str, Cue] = {}
    for cue in cues(text, _around(sentence, target), target):
        if cue.scope.begin <= target.begin and target.end <= cue.scope.end:
            properties.setdefault(cue.flag, cue)
    flag = BY_ASPECT.get(aspect_of(heading)) if heading else None
    if flag and flag not in properties:
        begin = _around(sentence, target).begin
        if flag != "family" or not OF_THE_PATIENT.search(text, begin, target.begin):
            properties[flag] = Cue(flag, heading or "", None, sentence)
    return properties


def _around(sentence: Span, target: Span) -> Span:
    """Return the part of a long sentence whose cues may reach the target; neighbouring targets share it."""
    begin = sentence.begin + (target.begin - sentence.begin) // FAR * FAR
    return Span(max(sentence.begin, begin - FAR), min(sentence.end, max(begin + 2 * FAR, target.end)))


def cues(text: str, sentence: Span, target: Span) -> Iterable[Cue]:
    """Return the cues of a sentence with their scopes, except words inside the target."""
    matches, cues_of_sentence = _in_sentence(text, sentence)
    if any(match.end() > target.begin and match.start() < target.end for match, _ in matches):
        return list(_scoped(text, sentence, list(_outside(text, matches, target))))
    return cues_of_sentence


@lru_cache(maxsize=1)  # callers process the mentions of a sentence one after another
def _in_sentence(text: str, sentence: Span) -> tuple[list[Match], list[Cue]]:
    matches = list(_search(text, *sentence))
    return matches, list(_scoped(text, sentence, matches))


def _outside(text: str, matches: Iterable[Match], target: Span) -> Iterator[Match]:
    """Yield the matches outside the target; search the words before the target again if a match overlaps it."""
    for match, rules in matches:
        if match.end() <= target.begin or match.start() >= target.end:
            yield match, rules
        elif match.start() < target.begin:
            yield from _search(text, match.start(), target.begin)


def _search(text: str, begin: int, end: int) -> Iterator[Match]:
    """Yield all matches in a span of the text, from left to right, without overlaps."""
    matchers = _matchers()
    for start in START.finditer(text, begin, end):
        if start.start() >= begin:
            matcher = matchers.get(start[0].lower() if start[0].isalpha() else "")
            if matcher and (match := matcher.pattern.match(text, start.start(), end)) and match[0]:
                begin = match.end()
                yield match, matcher.rules[(match.lastindex or 1) - 1]


def _scoped(text: str, sentence: Span, matches: Sequence[Match]) -> Iterator[Cue]:
    """Yield the cues among the matches; a scope ends with the sentence, or at the nearest words that stop its flag.

    A cue for `possible` ends the scope of one for `negated`, and vice versa ("no mass, possible cyst").
    """
    ends = {flag: [sentence.begin, *(m.end() for m, rules in matches if _stops(rules, flag))] for flag in FLAGS}
    starts = {
        flag: [
            *(m.start() for m, rules in matches if _stops(rules, flag) or _has_flag(rules, OPPOSITE.get(flag))),
            sentence.end,
        ]
        for flag in FLAGS
    }
    for match, rules in matches:
        for rule in rules:
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


def _stops(rules: Iterable[Rule], flag: str) -> bool:
    return any(rule.flag == "stop" and rule.scope in ("all", flag) for rule in rules)


def _has_flag(rules: Iterable[Rule], flag: str | None) -> bool:
    return any(rule.flag == flag for rule in rules)

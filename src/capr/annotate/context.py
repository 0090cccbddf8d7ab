"""Context: is a finding negated, uncertain, hypothetical, in the past, or somebody else's?

ConText (Harkema, Dowling, Thornblade and Chapman 2009): cues open a scope, before or after them, that ends with the
sentence or at a terminating word; what stands in the scope has the cue's property. The cues are data (context.tsv).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from capr.annotate.aspects import aspect_of
from capr.documents import CaprError, Span
from capr.segment import sentences

FLAGS = ("negated", "possible", "hypothetical", "historical", "family")
SCOPES = {"stop": ("all", *FLAGS), "none": ("",), **dict.fromkeys(FLAGS, ("forward", "near", "backward", "both"))}
# Headings that say it for everything under them, until a sentence speaks of the patient.
BY_ASPECT = {"family history": "family", "past medical history": "historical", "past surgical history": "historical"}
NEXT_WORDS = re.compile(r"(?:\W*\w+){0,8}")  # as far as a cue reaches whose scope is near
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
    found = []
    lines = files("capr.annotate").joinpath("context.tsv").read_text("utf-8").splitlines()
    for number, line in enumerate(lines[1:], 2):
        columns = line.split("\t")
        if len(columns) != 3 or columns[2] not in SCOPES.get(columns[1], ()):
            fix = f"write a pattern, one of {', '.join(SCOPES)}, and its scope, with tabs between"
            raise CaprError(f"context.tsv, line {number}: {line[:60]!r} is not a rule. Fix: {fix}.")
        try:
            re.compile(columns[0])
        except re.error as error:
            raise CaprError(f"context.tsv, line {number}: {columns[0]!r} is not a pattern ({error}).") from error
        found.append(Rule(*columns))
    return tuple(found)


@cache
def _matcher() -> tuple[re.Pattern[str], dict[str, tuple[Rule, ...]]]:
    """All patterns in one, those of no meaning first, then the longest; and the rules that share each pattern."""
    by_pattern: dict[str, list[Rule]] = {}
    for rule in rules():
        by_pattern.setdefault(rule.pattern, []).append(rule)
    ordered = sorted(by_pattern, key=lambda p: (by_pattern[p][0].flag == "none", len(p)), reverse=True)
    parts = []
    for i, pattern in enumerate(ordered):
        begin = r"(?<![\w-])" if pattern[0].isalpha() or (pattern[0] == "(" and pattern[1] == "?") else ""
        end = "" if re.search(r"\(\?[=!][^)]*\)\)*$", pattern) or not re.search(r"[\w)?*+.}]$", pattern) else r"(?!\w)"
        parts.append(f"(?P<r{i}>{begin}(?:{pattern}){end})")
    return re.compile("|".join(parts), re.IGNORECASE), {f"r{i}": tuple(by_pattern[p]) for i, p in enumerate(ordered)}


def context(text: str, target: Span, heading: str | None = None) -> dict[str, Cue]:
    """The properties of what stands at `target`, each with the cue that gives it.

    Args:
        text: the text around it; only its own sentence counts.
        target: a range of the text, such as a mention.
        heading: of the section that it stands in.

    Returns:
        A cue for each flag that holds, of `FLAGS`.

    Example:
        >>> found = context("Denies fever, chills or cough.", Span(24, 29))
        >>> {flag: cue.words for flag, cue in found.items()}
        {'negated': 'Denies'}
    """
    sentence = next((s for s in sentences(text) if s.begin <= target.begin < s.end), Span(0, len(text)))
    found: dict[str, Cue] = {}
    for cue in cues(text, sentence, target):
        if cue.scope.begin <= target.begin and target.end <= cue.scope.end:
            found.setdefault(cue.flag, cue)
    flag = BY_ASPECT.get(aspect_of(heading)) if heading else None
    about_the_patient = OF_THE_PATIENT.search(text, sentence.begin, target.begin)
    if flag and flag not in found and not (flag == "family" and about_the_patient):
        found[flag] = Cue(flag, heading or "", None, sentence)
    return found


def cues(text: str, sentence: Span, target: Span) -> Iterator[Cue]:
    """The cues of a sentence with their scopes; words inside the target itself are none."""
    matcher, by_group = _matcher()
    matches = [
        (match, by_group[match.lastgroup or ""])
        for match in matcher.finditer(text, *sentence)
        if match.end() <= target.begin or match.start() >= target.end
    ]
    for match, meant in matches:
        for rule in meant:
            if rule.flag in ("none", "stop"):
                continue
            before, after = _borders(matches, rule.flag, match, sentence)
            if rule.scope == "near":
                words = NEXT_WORDS.match(text, match.end(), after)
                yield Cue(rule.flag, match[0], Span(*match.span()), Span(match.end(), words.end() if words else after))
            if rule.scope in ("forward", "both"):
                yield Cue(rule.flag, match[0], Span(*match.span()), Span(match.end(), after))
            if rule.scope in ("backward", "both"):
                yield Cue(rule.flag, match[0], Span(*match.span()), Span(before, match.start()))


def _borders(
    matches: Sequence[tuple[re.Match[str], tuple[Rule, ...]]], flag: str, cue: re.Match[str], sentence: Span
) -> tuple[int, int]:
    """Where the scopes of a cue end, before and after it: at the nearest words that stop its flag."""
    before, after = sentence
    for match, meant in matches:
        if not any(rule.flag == "stop" and rule.scope in ("all", flag) for rule in meant):
            continue
        if match.end() <= cue.start():
            before = max(before, match.end())
        elif match.start() >= cue.end():
            after = min(after, match.start())
    return before, after

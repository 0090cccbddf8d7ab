"""The questions of a note: all that its clauses answer, less those that another place may answer otherwise."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import NamedTuple

from capr.documents import Span
from capr.supervise.clauses.asking import asked
from capr.supervise.clauses.grammar import clauses
from capr.supervise.clauses.inversion import Asked
from capr.supervise.clauses.patterns import patterned
from capr.supervise.clauses.rewording import reworded
from capr.supervise.facts.note import Note, trimmed

MALE, FEMALE = (
    re.compile(r"\b(?:he|his|him|Mr|male|man|boy)\b"),
    re.compile(r"\b(?:she|her|hers|Mrs|Ms|female|woman|girl)\b"),
)
SEVERAL = re.compile(
    r"\b(?:[Cc]ase|[Pp]atient)\s+(?:no\.?\s*|#\s*)?(?:2|two|B|II)\b|\b(?:[Bb]oth|[Tt]wo|[Tt]hree|"
    r"[Ff]our|[Ff]ive|[Ss]ix|[Ss]even|[Ee]ight|[Tt]en|\d+)\s+"
    r"(?:[\w-]+\s+){0,3}(?:patients|cases|siblings|sisters|brothers|children|infants|women|men|males|females|"
    r"twins)\b|\b[Ss]econd (?:patient|case)\b"
)
LABEL = re.compile(r"[\s•*–-]*(?:[A-Z][\w/ -]{2,40}:\s+)?(?=\S)")
WORD = re.compile(r"\w+")
LITTLE = frozenset(
    "a an the of in on at to for with by from and or was were is are did does do had has have be "
    "been any there who his her he she "
    "patient what why when where which how long many often not for happened".split()
)
LOOSE = re.compile(
    r"\b(?:it|its|this|these|those|they|them|their|which|such|latter|former|we|our|us|i|my|you|your|"
    r"above|below|same|respectively|fig|figure|table|et)\b",
    re.IGNORECASE,
)
PRONOUNS = frozenset("he she it they them him her this that these those we us one which who no yes".split())
ENDINGS = frozenset(
    "of in on at by for with without to from and or the a an his her was were is as that than into be any not".split()
)
VERBLESS = re.compile(r"^(?:What|Why|When|Where) (?:did|does|was|is|were) \{who\} ?\??$")


SHARES = {"how old": 0.3}  # of what nearly every report says


class Candidate(NamedTuple):
    """A question that may be asked."""

    kind: str
    words: str
    answer: Span
    place: int
    content: frozenset[str]


def clause_questions(note: Note, draw: random.Random) -> Iterator[tuple[str, str, Span]]:
    """Questions that clauses of a note answer: their kind, their words, and the answer's place in the note's text.

    Of notes about several patients nothing is asked, since a question could mean any of them.

    Args:
        note: with mentions, of which some are named otherwise in the questions.
        draw: chooses wordings.
    """
    if SEVERAL.search(note.text):
        return
    male, female = len(MALE.findall(note.text)), len(FEMALE.findall(note.text))
    pronoun = "he" if male > 2 * female else "she" if female > 2 * male else ""
    found = [one for one in _candidates(note) if _pronouns_fit(one, pronoun)]
    chosen: dict[tuple[int, str], list[Candidate]] = {}
    for one in found:
        if not any(_rivals(one, other) for other in found):
            chosen.setdefault((one.place, one.kind), []).append(one)
    seen: set[str] = set()
    for (_, kind), group in chosen.items():
        one = draw.choice(group)
        if draw.random() >= SHARES.get(kind, 1):
            continue
        who = pronoun if pronoun and draw.random() < 0.5 else "the patient"
        words = reworded(note, one.words.replace("{who}", who), one.answer, draw)
        if words not in seen:
            seen.add(words)
            yield one.kind, words, one.answer


def _candidates(note: Note) -> Iterator[Candidate]:
    text = note.text
    drugs = frozenset(text[m.span.begin : m.span.end].lower() for m in note.mentions if m.kind == "drug")
    for number, sentence in enumerate(note.sentences):
        section = note.section(sentence.begin)
        if section and re.search(r"family|instruction|education", section.heading or "", re.IGNORECASE):
            continue
        begin = sentence.begin
        if section and section.heading_span and begin < section.heading_span.end <= sentence.end:
            begin = section.heading_span.end
        label = LABEL.match(text, begin, sentence.end)
        span = Span(label.end() if label else begin, sentence.end)
        if (
            "\n\n" in span.of(text).strip()
            or re.search(r"\n\s*[-•*\d]", span.of(text))
            or not re.search(r"[.;]\s*$", span.of(text))
        ):
            continue
        said: list[Asked] = list(patterned(text, span))
        for clause in clauses(text, span):
            said += asked(clause, drugs)
        for one in said:
            answer = trimmed(text, *one.answer)
            words = " ".join(one.words.split())
            if _is_good(words, answer.of(text), one.kind):
                content = frozenset(w for w in WORD.findall(words.lower()) if w not in LITTLE)
                yield Candidate(one.kind, words, answer, number, content)


def _is_good(words: str, answer: str, kind: str) -> bool:
    """Whether a question and its answer are of a kind that a person could have written."""
    plain, said = words.lower(), answer.lower()
    inside, outside = set(WORD.findall(plain)) - LITTLE, set(WORD.findall(said)) - LITTLE
    count, size = len(words.split()), len(answer.split())
    if (
        not 3 + (kind != "how old") <= count + words.count("{who}") <= 22
        or not 1 <= size <= 25
        or not words.endswith("?")
    ):
        return False
    if (
        re.search(r" ,|\b(\w+) \1\b|\bany\b.* no |\b(?:his|her) yet\b", words)
        or LOOSE.search(words, 5)
        or VERBLESS.match(words)
        or re.search(r"[;:\"“”?]", words[:-1])
        or words[:-1].split()[-1].lower() in ENDINGS - {"of", "on", "with", "to", "from", "for", "by", "in", "as"}
    ):
        return False
    if (
        set(said.split()) <= PRONOUNS | ENDINGS
        or said.split()[-1] in ENDINGS
        or said.split()[0] in ("and", "or", "it", "this", "these", "they")
    ):
        return False
    if answer.count("(") != answer.count(")") or said in plain or "\n\n" in answer:
        return False
    if kind in ("how old", "yes or no"):
        return kind == "how old" or bool(inside)
    return not (inside and inside <= outside) and bool(outside or kind in ("how many", "when"))


def _rivals(one: Candidate, other: Candidate) -> bool:
    """Whether another candidate has another answer to what may be the same question."""
    alike = one.kind == other.kind or {one.kind, other.kind} <= {"what", "which", "who"}
    return (
        alike
        and one.answer != other.answer
        and one.content <= other.content
        and one.words.split()[0] == other.words.split()[0]
    )


def _pronouns_fit(one: Candidate, pronoun: str) -> bool:
    """Whether `he` and `she` in a question can only mean the patient."""
    named = set(re.findall(r"\b(?:he|she|him|his|her|hers)\b", one.words.lower()))
    return not named or (
        bool(pronoun) and named <= ({"he", "him", "his"} if pronoun == "he" else {"she", "her", "hers"})
    )

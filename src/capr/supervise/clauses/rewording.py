"""Other words for what a question names: synonyms of the vocabulary, classes of drugs, lay words."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from capr.documents import CaprError, Span
from capr.supervise.facts.note import Note

SHARE, PLAIN = 0.35, 0.5  # of the names, and of the clinical words, that are exchanged where others are known
NAME = re.compile(r"[a-z]{4,}(?:[ -][a-z]{3,}){0,2}|[A-Z]{3,5}")
NOT_NOUN = re.compile(
    r"(?:\?|(?:was|were|is|are|had|has|have|did|be|been|given|started|stopped|held|and|or|for|in|on|"
    r"at|to|with|by|from|of|after|"
    r"before|during|because|\w+ed|when)\b)"
)
DETERMINED = re.compile(
    r"\b(?:the|an?|his|her|any|no|which|this|of|oral|intravenous|iv|mg|dose|daily|\w+ed|\w+ing)\s+$", re.IGNORECASE
)
ARTICLED = re.compile(r"\b(?:any|the|an?|his|her|no|of|\w+(?:al|ic|ive|ous|ere|ild|ute|ing|ed))\s+$", re.IGNORECASE)
VOWEL = r"[aio]|e(?!u)|u(?:n(?!i)|l|p|r[gi])"  # before which `an` stands: an ulcer, a unit
BROAD = frozenset(
    "tumor tumour cancer lesion mass cyst infection disease syndrome pain surgery steroid antibiotic "
    "antibiotics".split()
)


@cache
def classes() -> Mapping[str, tuple[str, ...]]:
    """The table classes.tsv: what a drug may be called, by its name."""
    found = {}
    for number, line in enumerate(files(__package__).joinpath("classes.tsv").read_text("utf-8").splitlines()[1:], 2):
        columns = line.split("\t")
        if len(columns) != 2 or not all(columns):
            raise CaprError(f"classes.tsv, line {number}: {line[:60]!r} is not names of a class and its drugs.")
        found.update({drug: tuple(columns[0].split("|")) for drug in columns[1].split("|")})
    return found


@cache
def lay() -> tuple[Mapping[str, tuple[str, ...]], re.Pattern[str]]:
    """The table lay.tsv: lay words by the clinical ones, and a pattern that finds these."""
    found = {}
    for number, line in enumerate(files(__package__).joinpath("lay.tsv").read_text("utf-8").splitlines()[1:], 2):
        columns = line.split("\t")
        if len(columns) != 2 or not all(columns) or columns[0] in found:
            raise CaprError(f"lay.tsv, line {number}: {line[:60]!r} is not a new term with lay words.")
        found[columns[0]] = tuple(columns[1].split("|"))
    names = "|".join(re.escape(name) for name in sorted(found, key=len, reverse=True))
    return found, re.compile(rf"(?<![\w-])(?:{names})(?![\w-])", re.IGNORECASE)


def reworded(note: Note, words: str, answer: Span, draw: random.Random) -> str:
    """A question with some names exchanged for others; as it was if that would give the answer away."""
    changed = plainly(_articled(words, _synonyms(note, _drugs(note, words, draw), draw)), draw)
    said = answer.of(note.text).lower()
    return words if said in changed.lower() or len(changed.split()) > 22 else changed


def plainly(words: str, draw: random.Random) -> str:
    """A question with some of its clinical words exchanged for lay ones."""
    table, pattern = lay()

    def plain(match: re.Match[str]) -> str:
        if draw.random() >= PLAIN:
            return match[0]
        other = draw.choice(table[match[0].lower()])
        if re.search(r"\w\s+$", match.string[: match.start()]) and ARTICLED.search(match.string[: match.start()]):
            other = re.sub(r"^an?\s+", "", other)
        return other[0].upper() + other[1:] if match.start() == 0 else other

    return _articled(words, pattern.sub(plain, words))


def _articled(words: str, changed: str) -> str:
    """What a question has become, with `a` and `an` before what they stand before now."""
    if changed == words:
        return words
    return re.sub(rf"\b([Aa])n?\s+(?=({VOWEL})|[a-z])", lambda m: f"{m[1]}{'n' if m[2] else ''} ", changed)


def _drugs(note: Note, words: str, draw: random.Random) -> str:
    named = {note.document[m.span].lower() for m in note.mentions if m.kind == "drug"}
    for name in sorted(named & classes().keys()):
        match = re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", words, re.IGNORECASE)
        if not match or draw.random() >= SHARE:
            continue
        other = draw.choice(classes()[name])
        alone = not any(
            classes()[also] is not None and also != name and set(classes()[also]) & set(classes()[name])
            for also in named & classes().keys()
        )
        if not alone or re.match(r"\s*\d", words[match.end() :]) or other.lower() in note.lower:
            continue  # the class could mean another drug of the note
        before, after = words[: match.start()], words[match.end() :].lstrip()
        article = "the " if NOT_NOUN.match(after) and not DETERMINED.search(before) else ""
        words = f"{before}{article}{other}{words[match.end() :]}"
    return words


def _synonyms(note: Note, words: str, draw: random.Random) -> str:
    for mention in note.mentions:
        name = note.document[mention.span]
        if (
            mention.concept is None
            or mention.kind == "symptom"
            or name.lower() in BROAD
            or name.lower() not in words.lower()
        ):
            continue
        others = [
            other
            for other in mention.concept.names[: 1 if mention.kind == "drug" else 2]
            if NAME.fullmatch(other) and other.lower() != name.lower() and not other.endswith("s")
        ]
        match = re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", words)
        if match and others and name[-1:] != "s" and draw.random() < SHARE:
            words = f"{words[: match.start()]}{draw.choice(others)}{words[match.end() :]}"
    return words

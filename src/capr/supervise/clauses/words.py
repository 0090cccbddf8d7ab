"""Words that carry the grammar of a clause, and verbs in all their forms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from capr.documents import CaprError, Span

TOKEN = re.compile(
    r"(?:Mr|Mrs|Ms|Dr|Prof|vs|approx)\.|[A-Z]\.(?= ?[a-z]{4})|\d+(?:[.,:]\d+)*%?|\w+(?:[-/.'’]\w+)*%?|[^\w\s]"
)
BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
BE = frozenset("is are was were".split())
HAVE = frozenset("has have had".split())
DO = frozenset("does do did".split())
MODALS = frozenset("will would can could should may might must".split())
AUXILIARIES = BE | HAVE | DO | MODALS
NOT = frozenset("not never".split())
ADVERBS = frozenset(
    "also then thus therefore again still now soon once first later already just not never since "
    "even only often always further eventually ever however".split()
)
NO_ADVERBS = frozenset("family daily early only anomaly elderly assembly reply supply july likely".split())
DETERMINERS = frozenset("a an the his her its their our my this that these those some any no another each".split())
PREPOSITIONS = frozenset(
    "of in on at by for with without to from into onto over under after before during within through between among "
    "against per via about around above below across along despite until since upon toward towards following "
    "including regarding concerning than as except".split()
)
SUBORDINATORS = frozenset(
    "which that who whom whose when while whereas because although though if whether where since as until unless "
    "than but so what how why".split()
)
VAGUE = frozenset(
    "it this that these those they them there which who what one some others both all latter former such none other "
    "another i you we us here either neither each most many few several following everything nothing".split()
)


PEOPLE = frozenset("man woman male female boy girl patient infant child lady gentleman neonate newborn".split())


class Token(NamedTuple):
    """A word or sign of a text; brackets and what stands in them are none."""

    begin: int
    end: int
    text: str
    lower: str


class Verb(NamedTuple):
    """A row of verbs.tsv: how a verb is bent, and after which words its object is asked for (`-`: directly)."""

    base: str
    past: str
    participle: str
    asks: tuple[str, ...]


@cache
def verbs() -> Mapping[str, Verb]:
    """The table verbs.tsv, by the base form."""
    found = {}
    for number, line in enumerate(files(__package__).joinpath("verbs.tsv").read_text("utf-8").splitlines()[1:], 2):
        columns = line.split("\t")
        if len(columns) != 4 or columns[0] in found:
            raise CaprError(f"verbs.tsv, line {number}: {line[:60]!r} is not a new verb with its forms.")
        base, past, participle, asks = columns
        regular = re.sub(r"(?<=[^aeiou])y$", "i", base)
        regular = base + "d" if base.endswith("e") else regular + "ed"
        found[base] = Verb(base, past or regular, participle or regular, tuple(asks.split()))
    return found


@cache
def forms() -> tuple[Mapping[str, Verb], Mapping[str, Verb], Mapping[str, Verb]]:
    """Verbs by their past, by their participle, and by the third person."""
    table = verbs().values()
    third = {
        re.sub(r"(?<=[^aeiou])y$|(?<=s|x|z|h)$|(?<=o)$", lambda m: "ie" if m[0] else "e", v.base) + "s": v
        for v in table
    }
    return {v.past: v for v in table}, {v.participle: v for v in table}, third


def is_participle(word: str) -> bool:
    """`given`, `admitted`, `re-explored`."""
    return word in forms()[1] or (len(word) > 4 and word.endswith("ed") and word not in ("need", "speed", "naked"))


def is_adverb(word: str) -> bool:
    """`not`, `then`, `subsequently`."""
    return word in ADVERBS or (len(word) > 4 and word.endswith("ly") and word not in NO_ADVERBS)


def tokens(text: str, span: Span) -> list[Token]:
    """The words and signs of a range, without what stands in brackets."""
    hidden = [match.span() for match in BRACKETS.finditer(text, *span)]
    return [
        Token(match.start(), match.end(), match[0], match[0].lower())
        for match in TOKEN.finditer(text, *span)
        if not any(begin <= match.start() < end for begin, end in hidden)
    ]


def verb_at(words: Sequence[Token], at: int, end: int) -> tuple[int, str, str, bool] | None:
    """The verb group that begins there: its end, form, base form and whether it is negated."""
    first, place = words[at].lower, at + 1
    past, participle, third = forms()

    def skip() -> int:
        nonlocal place
        begin = place
        while place < end and is_adverb(words[place].lower):
            place += 1
        return begin

    def negated() -> bool:
        return any(word.lower in NOT for word in words[at:place])

    if first in BE:
        skip()
        if place < end and words[place].lower == "being":
            place += 1
        word = words[place].lower if place < end else ""
        if is_participle(word):
            place += 1
            return place, "passive", participle[word].base if word in participle else "", negated()
        if word.endswith("ing") and len(word) > 5 and word not in ("during", "following", "including", "nothing"):
            return place + 1, "progressive", "", negated()
        return place, "copula", "be", negated()
    if first in HAVE:
        skip()
        word = words[place].lower if place < end else ""
        if word == "been":
            place += 1
            skip()
            word = words[place].lower if place < end else ""
            if is_participle(word):
                place += 1
                return place, "passive", participle[word].base if word in participle else "", negated()
            if word.endswith("ing"):
                return place + 1, "progressive", "", negated()
            return None
        if is_participle(word) and (place + 1 >= end or words[place + 1].lower not in ("by",)):
            following = words[place + 1].lower if place + 1 < end else ""
            if word in participle or following in DETERMINERS | PREPOSITIONS | {"", ",", "."}:
                return place + 1, "perfect", participle[word].base if word in participle else "", negated()
            return None
        return (at + 1, "present" if first != "had" else "past", "have", False) if place == at + 1 else None
    if first in DO:
        skip()
        word = words[place].lower if place < end else ""
        return (place + 1, "done", word, True) if negated() and word in verbs() else None
    if first in MODALS:
        skip()
        word = words[place].lower if place < end else ""
        if word == "be" and place + 1 < end and is_participle(words[place + 1].lower):
            main = words[place + 1].lower
            return place + 2, "modal passive", participle[main].base if main in participle else "", negated()
        return (place + 1, "modal", word, negated()) if word in verbs() else None
    if first in past:
        return place, "past", past[first].base, False
    if first in third:
        return place, "present", third[first].base, False
    return None

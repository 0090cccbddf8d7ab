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
NOT_ADVERBS = frozenset("family daily early only anomaly elderly assembly reply supply july likely".split())
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


class ClauseWord(NamedTuple):
    """A word or punctuation mark of a text. `tokenise` skips brackets and the text in them."""

    begin: int
    end: int
    text: str
    lower: str


class Verb(NamedTuple):
    """A row of verbs.tsv: the forms of a verb, and the words before its object.

    Attributes:
        base: the base form.
        past: the past form.
        participle: the past participle.
        object_markers: the words before an object that a question can ask for; `-` if the object follows the verb.
    """

    base: str
    past: str
    participle: str
    object_markers: tuple[str, ...]


@cache
def verbs() -> Mapping[str, Verb]:
    """Read verbs.tsv: verbs by their base form."""
    table = {}
    for number, line in enumerate(files(__package__).joinpath("verbs.tsv").read_text("utf-8").splitlines()[1:], 2):
        columns = line.split("\t")
        if len(columns) != 4 or columns[0] in table:
            raise CaprError(f"verbs.tsv, line {number}: {line[:60]!r} is not a new verb with its forms.")
        base, past, participle, asks = columns
        regular = re.sub(r"(?<=[^aeiou])y$", "i", base)
        regular = base + "d" if base.endswith("e") else regular + "ed"
        table[base] = Verb(base, past or regular, participle or regular, tuple(asks.split()))
    return table


@cache
def verbs_by_form() -> tuple[Mapping[str, Verb], Mapping[str, Verb], Mapping[str, Verb]]:
    """Return verbs by their past form, by their participle, and by their third person."""
    table = verbs().values()
    third = {
        re.sub(r"(?<=[^aeiou])y$|(?<=s|x|z|h)$|(?<=o)$", lambda match: "ie" if match[0] else "e", verb.base) + "s": verb
        for verb in table
    }
    return {verb.past: verb for verb in table}, {verb.participle: verb for verb in table}, third


def is_participle(word: str) -> bool:
    """Tell whether a word may be a past participle: `given`, `admitted`, `re-explored`."""
    return word in verbs_by_form()[1] or (
        len(word) > 4 and word.endswith("ed") and word not in ("need", "speed", "naked")
    )


def is_adverb(word: str) -> bool:
    """Tell whether a word is an adverb: `not`, `then`, `subsequently`."""
    return word in ADVERBS or (len(word) > 4 and word.endswith("ly") and word not in NOT_ADVERBS)


def tokenise(text: str, span: Span) -> list[ClauseWord]:
    """Return the words and punctuation marks of a range, without the text in brackets."""
    hidden = [match.span() for match in BRACKETS.finditer(text, *span)]
    return [
        ClauseWord(match.start(), match.end(), match[0], match[0].lower())
        for match in TOKEN.finditer(text, *span)
        if not any(begin <= match.start() < end for begin, end in hidden)
    ]


def verb_at(words: Sequence[ClauseWord], begin: int, end: int) -> tuple[int, str, str, bool] | None:
    """Return the verb group at `begin`: its end, form, base form and whether it is negated; None if there is none."""
    first, position = words[begin].lower, begin + 1
    past, participle, third = verbs_by_form()

    def skip() -> int:
        nonlocal position
        start = position
        while position < end and is_adverb(words[position].lower):
            position += 1
        return start

    def negated() -> bool:
        return any(word.lower in NOT for word in words[begin:position])

    if first in BE:
        skip()
        if position < end and words[position].lower == "being":
            position += 1
        word = words[position].lower if position < end else ""
        if is_participle(word):
            position += 1
            return position, "passive", participle[word].base if word in participle else "", negated()
        if word.endswith("ing") and len(word) > 5 and word not in ("during", "following", "including", "nothing"):
            return position + 1, "progressive", "", negated()
        return position, "copula", "be", negated()
    if first in HAVE:
        skip()
        word = words[position].lower if position < end else ""
        if word == "been":
            position += 1
            skip()
            word = words[position].lower if position < end else ""
            if is_participle(word):
                position += 1
                return position, "passive", participle[word].base if word in participle else "", negated()
            if word.endswith("ing"):
                return position + 1, "progressive", "", negated()
            return None
        if is_participle(word) and (position + 1 >= end or words[position + 1].lower not in ("by",)):
            following = words[position + 1].lower if position + 1 < end else ""
            if word in participle or following in DETERMINERS | PREPOSITIONS | {"", ",", "."}:
                return position + 1, "perfect", participle[word].base if word in participle else "", negated()
            return None
        return (begin + 1, "present" if first != "had" else "past", "have", False) if position == begin + 1 else None
    if first in DO:
        skip()
        word = words[position].lower if position < end else ""
        return (position + 1, "done", word, True) if negated() and word in verbs() else None
    if first in MODALS:
        skip()
        word = words[position].lower if position < end else ""
        if word == "be" and position + 1 < end and is_participle(words[position + 1].lower):
            main_verb = words[position + 1].lower
            return (
                position + 2,
                "modal passive",
                participle[main_verb].base if main_verb in participle else "",
                negated(),
            )
        return (position + 1, "modal", word, negated()) if word in verbs() else None
    if first in past:
        return position, "past", past[first].base, False
    if first in third:
        return position, "present", third[first].base, False
    return None

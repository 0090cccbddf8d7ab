"""Clauses: subject, verb and what follows, of sentences that are simple enough to be taken apart with certainty."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
    "also then thus therefore again still now soon once first later already just both all well not never since "
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
    third = {re.sub(r"(?<=[^aeiou])y$|(?<=s|x|z|h)$|(?<=o)$", lambda m: "ie" if m[0] else "e", v.base) + "s": v for v in table}
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


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause with its parts, as ranges of the tokens of its sentence.

    Attributes:
        text: of the note.
        words: the tokens of the sentence.
        subject: from and to.
        verb: from and to; auxiliaries, adverbs and the main verb.
        form: `passive`, `perfect`, `progressive`, `modal`, `done` (with do), `past`, `present` or `copula`.
        base: of the main verb, empty if the table does not have it.
        negated: whether `not` or `never` stands with the verb.
        end: where the clause ends; what follows the verb goes up to it.
        lead: what stands before the subject, from and to.
    """

    text: str
    words: Sequence[Token]
    subject: tuple[int, int]
    verb: tuple[int, int]
    form: str
    base: str
    negated: bool
    end: int
    lead: tuple[int, int] = (0, 0)

    def said(self, begin: int, end: int) -> str:
        """The words of a range on one line, without brackets."""
        parts = []
        for at in range(begin, end):
            word = self.words[at]
            gap = self.text[self.words[at - 1].end : word.begin] if at > begin else ""
            parts.append((" " if gap else "") + _cased(self.words, at))
        return "".join(parts)

    def span(self, begin: int, end: int) -> Span:
        """Where a range stands in the note."""
        return Span(self.words[begin].begin, self.words[end - 1].end)

    def lower(self, begin: int, end: int) -> list[str]:
        """The words of a range in lower case."""
        return [word.lower for word in self.words[begin:end]]


def _cased(words: Sequence[Token], at: int) -> str:
    """A word as it stands within a sentence: the first one without its capital, unless it is a name."""
    word = words[at].text
    following = words[at + 1].text if at + 1 < len(words) else ""
    ordinary = word[1:].islower() or len(word) == 1
    if at == 0 and ordinary and not word.endswith(".") and not (following[:1].isupper() and following[1:].islower()):
        return word.lower()
    return word


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


def clauses(text: str, sentence: Span) -> Iterator[Clause]:
    """The clauses of a sentence that share its first subject, and those after a semicolon or `and`."""
    words = tokens(text, sentence)
    while words and words[-1].text in ".;,":
        words.pop()
    if not 4 <= len(words) <= 60 or any(word.text in ":?\"“”•" for word in words):
        return
    for begin, end in _parts(words):
        found = _clause(text, words, begin, end)
        if not found:
            continue
        yield found
        at = found.verb[1]
        while at < end:  # `he was admitted and underwent a biopsy`
            at += 1
            if words[at - 1].lower not in ("and", "but") or at >= end:
                continue
            first = at + 1 if is_adverb(words[at].lower) and at + 1 < end else at
            verb = verb_at(words, first, end)
            if verb and verb[1] != "present" and (words[first].lower in AUXILIARIES or _surely_finite(words, first, end)):
                past_first = found.form in ("past", "perfect", "passive", "copula")
                if words[first].lower in AUXILIARIES or (past_first and found.form == "past"):
                    yield replace(
                        found, verb=(first, verb[0]), form=verb[1], base=verb[2], negated=verb[3],
                        end=_end(words, verb[0], end), lead=(0, 0),
                    )  # fmt: skip


def _parts(words: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Where a sentence falls into main clauses."""
    begin = 0
    for at, word in enumerate(words):
        if word.text == ";":
            yield begin, at
            begin = at + 1
        elif word.lower in ("and", "but", "so") and at and words[at - 1].text == "," and _begins(words, at + 1):
            yield begin, at - 1
            begin = at + 1
        elif word.lower in ("and", "but") and at + 2 < len(words) and words[at + 1].lower in ("he", "she", "the", "his", "her"):
            if _begins(words, at + 1):
                yield begin, at
                begin = at + 1
    yield begin, len(words)


def _begins(words: Sequence[Token], at: int) -> bool:
    """Whether a subject and a verb stand there."""
    for place in range(at + 1, min(at + 8, len(words))):
        word = words[place].lower
        if word in AUXILIARIES or (word in forms()[0] and _surely_finite(words, place, len(words))):
            return words[at].lower not in PREPOSITIONS
        if word == "," or word in SUBORDINATORS:
            return False
    return False


def _surely_finite(words: Sequence[Token], at: int, end: int) -> bool:
    """Whether a past form is no participle: `showed a mass`, but not `(a man) treated with insulin`."""
    word = words[at].lower
    verb = forms()[0][word] if word in forms()[0] else forms()[2].get(word)
    if verb is None or word in ("left", "read", "set", "cut", "felt", "presents", "reports", "notes", "results"):
        return False
    following = words[at + 1].lower if at + 1 < end else ""
    if verb.past != verb.participle or following in DETERMINERS or "-" not in verb.asks:
        return True
    return following not in PREPOSITIONS - {"to"} | {"", ","}


def _end(words: Sequence[Token], begin: int, end: int) -> int:
    """Where what belongs to a verb ends: before a further clause, a relative clause or an afterthought."""
    for at in range(begin, end):
        word = words[at].lower
        following = words[at + 1].lower if at + 1 < end else ""
        if word == ",":
            stop = next((i for i in range(at + 1, end) if words[i].text == ","), end)
            inside = [w.lower for w in words[at + 1 : stop]]
            if following in SUBORDINATORS | {"with", "without", "resulting", "leading", "suggesting", "thus", "however"}:
                return at
            if following.endswith("ing") or following in ("followed", "consistent", "based", "given", "due"):
                return at
            if any(w in AUXILIARIES or (w in forms()[0] and not _premodifies(words, at + 1 + i)) for i, w in enumerate(inside)):
                return at
        elif word in ("which", "who", "whereas", "but", "although", "though", "where", "while", "whose", "then"):
            return at
        elif word == "and" and at > begin:
            after = at + 2 if is_adverb(following) else at + 1
            if after < end and (words[after].lower in AUXILIARIES or _surely_finite(words, after, end)):
                return at
            if _begins(words, at + 1):
                return at
    return end


def _premodifies(words: Sequence[Token], at: int) -> bool:
    return at > 0 and words[at - 1].lower in DETERMINERS


def _clause(text: str, words: Sequence[Token], begin: int, end: int) -> Clause | None:
    first = begin
    lead = (begin, begin)
    while first < end and (is_adverb(words[first].lower) or words[first].text == ","):
        first += 1
    comma = next((i for i in range(first, min(first + 14, end)) if words[i].text == ","), None)
    if comma and not any(w.lower in AUXILIARIES or w.lower in forms()[0] for w in words[first:comma]):
        lead, first = (first, comma), comma + 1
    while first < end and is_adverb(words[first].lower):
        first += 1
    for at in range(first + 1, min(first + 11, end)):
        word = words[at].lower
        if word == "," or word in SUBORDINATORS:
            return None
        verb = verb_at(words, at, end)
        if not verb or (word not in AUXILIARIES and not _surely_finite(words, at, end)):
            continue
        last = at
        while last > first and is_adverb(words[last - 1].lower):
            last -= 1
        if not is_subject(words[first:last]):
            return None
        if verb[1] == "present" and verb[2] != "have" and words[last - 1].lower.endswith("s") and words[last - 1].lower != "s":
            return None
        return Clause(text, words, (first, last), (at, verb[0]), *verb[1:], _end(words, verb[0], end), lead)
    return None


def is_subject(words: Sequence[Token]) -> bool:
    """Whether words are a subject that a question can name."""
    if not words or len(words) > 9:
        return False
    first, last = words[0].lower, words[-1].lower
    if first in VAGUE or first in PREPOSITIONS or last in PREPOSITIONS | DETERMINERS or last in AUXILIARIES:
        return False
    if first in ("to", "for", "not") or any(not word.text[0].isalnum() for word in words):
        return False
    if first.endswith("ing") and len(words) > 1 and words[1].lower in DETERMINERS | PREPOSITIONS:
        return False
    pairs = zip(words, words[1:], strict=False)
    return not any(is_participle(one.lower) and two.lower in PREPOSITIONS | DETERMINERS for one, two in pairs)

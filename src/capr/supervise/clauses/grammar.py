"""Clauses: subject, verb and what follows, of sentences that are simple enough to be taken apart with certainty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from capr.documents import Span
from capr.supervise.clauses.words import (
    AUXILIARIES,
    DETERMINERS,
    PEOPLE,
    PREPOSITIONS,
    SUBORDINATORS,
    VAGUE,
    Token,
    forms,
    is_adverb,
    is_participle,
    tokens,
    verb_at,
    verbs,
)


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
    ordinary = (word[1:].islower() and word.isalpha()) or len(word) == 1
    if (
        at == 0
        and ordinary
        and not word.endswith(".")
        and not (following[:1].isupper() and following[1:].islower() and following.isalpha())
        and not following[:1].isdecimal()
    ):
        return word.lower()
    return word


def clauses(text: str, sentence: Span) -> Iterator[Clause]:
    """The clauses of a sentence that share its first subject, and those after a semicolon or `and`."""
    words = tokens(text, sentence)
    while words and words[-1].text in ".;,":
        words.pop()
    if not 4 <= len(words) <= 60 or any(word.text in ':?"“”•' for word in words):
        return
    found: Clause | None
    for begin, end in _parts(words):
        found = _clause(text, words, begin, end) or _relative(text, words, begin, end)
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
            if (
                verb
                and verb[1] != "present"
                and (words[first].lower in AUXILIARIES or _surely_finite(words, first, end))
            ):
                irregular = verb[2] in verbs() and verbs()[verb[2]].past != verbs()[verb[2]].participle
                if words[first].lower in AUXILIARIES or irregular or found.form == "past":
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
        elif (
            word.lower in ("and", "but", "so")
            and at
            and words[at - 1].text == ","
            and _begins(words, at + 1)
            and any(w.lower in AUXILIARIES or w.lower in forms()[0] or w.lower in forms()[2] for w in words[begin:at])
        ):
            yield begin, at - 1
            begin = at + 1
        elif (
            word.lower in ("and", "but")
            and at + 2 < len(words)
            and words[at + 1].lower in ("he", "she", "the", "his", "her")
            and _begins(words, at + 1)
        ):
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
    if (
        verb is None
        or (at + 1 < end and words[at + 1].lower in AUXILIARIES)
        or word in ("cut", "felt", "presents", "reports", "notes", "results")
    ):
        return False
    following = words[at + 1].lower if at + 1 < end else ""
    if verb.past != verb.participle or following in DETERMINERS or "-" not in verb.asks:
        return True
    if verb.base in ("perform", "provide", "obtain", "order", "discuss", "recommend", "request", "note"):
        return False  # `Titer performed today` leaves out the auxiliary
    return following not in PREPOSITIONS | {"", ",", "today", "here"}


def _end(words: Sequence[Token], begin: int, end: int) -> int:
    """Where what belongs to a verb ends: before a further clause, a relative clause or an afterthought."""
    for at in range(begin, end):
        word = words[at].lower
        following = words[at + 1].lower if at + 1 < end else ""
        if word == ",":
            stop = next((i for i in range(at + 1, end) if words[i].text == ","), end)
            inside = [w.lower for w in words[at + 1 : stop]]
            if following in SUBORDINATORS | {
                "with",
                "without",
                "resulting",
                "leading",
                "suggesting",
                "thus",
                "however",
            }:
                return at
            if following.endswith("ing") or following in ("followed", "consistent", "based", "given", "due"):
                return at
            inside = inside[: next((i for i, w in enumerate(inside) if w in ("that", "which", "who")), len(inside))]
            if any(_tells(words, at + 1 + i) for i in range(len(inside))):
                return at
        elif word in ("which", "who", "whereas", "but", "although", "though", "where", "while", "whose"):
            return at
        elif word in ("and", "or"):
            after = at + 2 if is_adverb(following) else at + 1
            if after < end and (words[after].lower in AUXILIARIES or _surely_finite(words, after, end)):
                return at
            told = words[at + 2].lower if at + 2 < end else ""
            if following in forms()[2] and told in DETERMINERS | {"that", "he", "she"}:
                return at
            if _begins(words, at + 1) or (
                is_participle(following) and at + 2 < end and words[at + 2].lower in ("on", "with", "to", "by")
            ):
                return at
    return end


def _tells(words: Sequence[Token], at: int) -> bool:
    """Whether a word is a finite verb, whatever stands around it: in lists, `increased` may be a participle."""
    word, following = words[at].lower, words[at + 1].lower if at + 1 < len(words) else ""
    verb = forms()[0].get(word)
    return word in AUXILIARIES or (verb is not None and (verb.past != verb.participle or following in DETERMINERS))


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
    named = next((i for i in range(first + 1, min(first + 6, end)) if words[i].lower in ("he", "she")), None)
    if named and lead[0] == lead[1] and not any(_tells(words, i) for i in range(first, named)):
        if any(words[i].lower in forms()[2] or words[i].lower in forms()[0] for i in range(first, named)):
            return None
        lead, first = (first, named), named  # `Postoperatively she developed`
    for at in range(first + 1, min(first + 11, end)):
        word = words[at].lower
        if word == "," or word in SUBORDINATORS:
            return None
        verb = verb_at(words, at, end)
        if word in AUXILIARIES and not verb:
            return None
        if not verb or (word not in AUXILIARIES and not _surely_finite(words, at, end)):
            continue
        last = at
        while last > first and is_adverb(words[last - 1].lower):
            last -= 1
        if not is_subject(words[first:last]):
            return None
        if (
            verb[1] == "present"
            and verb[2] != "have"
            and words[last - 1].lower.endswith("s")
            and words[last - 1].lower != "s"
        ):
            return None
        return Clause(text, words, (first, last), (at, verb[0]), *verb[1:], _end(words, verb[0], end), lead)
    return None


def _relative(text: str, words: Sequence[Token], begin: int, end: int) -> Clause | None:
    """`(a woman) who presented with cough`: what the sentence says of the patient."""
    for at in range(begin + 1, end - 2):
        if words[at].lower == "who" and any(word.lower in PEOPLE for word in words[max(begin, at - 6) : at]):
            verb = verb_at(words, at + 1, end)
            return (
                Clause(text, words, (at, at + 1), (at + 1, verb[0]), *verb[1:], _end(words, verb[0], end))
                if verb
                else None
            )
    return None


def is_subject(words: Sequence[Token]) -> bool:
    """Whether words are a subject that a question can name."""
    if not words or len(words) > 9:
        return False
    first, last = words[0].lower, words[-1].lower
    if (
        first in VAGUE | SUBORDINATORS
        or first in PREPOSITIONS
        or last in PREPOSITIONS | DETERMINERS
        or last in AUXILIARIES
    ):
        return False
    if (
        first in ("to", "for", "not", "and", "but", "or", "both", "attempt")
        or last in ("and", "or", "also")
        or any(not word.text[0].isalnum() for word in words)
    ):
        return False
    if first.endswith("ing") and len(words) > 1 and words[1].lower in DETERMINERS | PREPOSITIONS:
        return False
    if len(words) > 1 and any(word.lower in ("he", "she", "it", "they", "we", "i", "who") for word in words):
        return False
    pairs = pairwise(words)
    return not any(is_participle(one.lower) and two.lower in PREPOSITIONS | DETERMINERS for one, two in pairs)

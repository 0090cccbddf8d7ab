"""Clauses, split into subject, verb and the rest, of sentences that are simple enough for rules to parse reliably."""

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
    ClauseWord,
    is_adverb,
    is_participle,
    tokenise,
    verb_at,
    verbs,
    verbs_by_form,
)


@dataclass(frozen=True, slots=True)
class ParsedClause:
    """A clause with its parts, as ranges of the tokens of its sentence.

    Attributes:
        text: the text of the note.
        words: the tokens of the sentence.
        subject: start and end of the subject.
        verb: start and end of auxiliaries, adverbs and the main verb.
        form: `passive`, `perfect`, `progressive`, `modal`, `modal passive`, `done` (with do), `past`, `present` or
            `copula`.
        base: the base form of the main verb, empty if verbs.tsv does not have it.
        negated: whether the verb has a `not` or `never`.
        end: the end of the clause, after everything that follows the verb.
        lead: start and end of what precedes the subject.
    """

    text: str
    words: Sequence[ClauseWord]
    subject: tuple[int, int]
    verb: tuple[int, int]
    form: str
    base: str
    negated: bool
    end: int
    lead: tuple[int, int] = (0, 0)

    def phrase(self, begin: int, end: int) -> str:
        """Return the words of a range on one line, without brackets."""
        parts = []
        for index in range(begin, end):
            word = self.words[index]
            gap = self.text[self.words[index - 1].end : word.begin] if index > begin else ""
            parts.append((" " if gap else "") + _in_sentence_case(self.words, index))
        return "".join(parts)

    def span(self, begin: int, end: int) -> Span:
        """Return the span of a range in the note."""
        return Span(self.words[begin].begin, self.words[end - 1].end)

    def lower_words(self, begin: int, end: int) -> list[str]:
        """Return the words of a range in lower case."""
        return [word.lower for word in self.words[begin:end]]


def _in_sentence_case(words: Sequence[ClauseWord], index: int) -> str:
    """Return a word in the case it has within a sentence: the first word loses its capital, unless it is a name."""
    word = words[index].text
    following = words[index + 1].text if index + 1 < len(words) else ""
    may_be_lowercased = (word[1:].islower() and word.isalpha()) or len(word) == 1
    if (
        index == 0
        and may_be_lowercased
        and not word.endswith(".")
        and not (following[:1].isupper() and following[1:].islower() and following.isalpha())
        and not following[:1].isdecimal()
    ):
        return word.lower()
    return word


def find_clauses(text: str, sentence: Span) -> Iterator[ParsedClause]:
    """Yield the clauses of a sentence that share its first subject, and those after a semicolon or `and`."""
    words = tokenise(text, sentence)
    while words and words[-1].text in ".;,":
        words.pop()
    if not 4 <= len(words) <= 60 or any(word.text in ':?"“”•' for word in words):
        return
    clause: ParsedClause | None
    for begin, end in _main_clauses(words):
        clause = _parse_clause(text, words, begin, end) or _parse_relative_clause(text, words, begin, end)
        if not clause:
            continue
        yield clause
        index = clause.verb[1]
        while index < end:  # `he was admitted and underwent a biopsy`
            index += 1
            if words[index - 1].lower not in ("and", "but") or index >= end:
                continue
            start = index + 1 if is_adverb(words[index].lower) and index + 1 < end else index
            verb = verb_at(words, start, end)
            if (
                verb
                and verb[1] != "present"
                and (words[start].lower in AUXILIARIES or _surely_finite(words, start, end))
            ):
                irregular = verb[2] in verbs() and verbs()[verb[2]].past != verbs()[verb[2]].participle
                if words[start].lower in AUXILIARIES or irregular or clause.form == "past":
                    yield replace(
                        clause,
                        verb=(start, verb[0]),
                        form=verb[1],
                        base=verb[2],
                        negated=verb[3],
                        end=_clause_end(words, verb[0], end),
                        lead=(0, 0),
                    )


def _main_clauses(words: Sequence[ClauseWord]) -> Iterator[tuple[int, int]]:
    """Yield start and end of the main clauses of a sentence."""
    begin = 0
    for index, word in enumerate(words):
        if word.text == ";":
            yield begin, index
            begin = index + 1
        elif (
            word.lower in ("and", "but", "so")
            and index
            and words[index - 1].text == ","
            and _begins_clause(words, index + 1)
            and any(
                token.lower in AUXILIARIES or token.lower in verbs_by_form()[0] or token.lower in verbs_by_form()[2]
                for token in words[begin:index]
            )
        ):
            yield begin, index - 1
            begin = index + 1
        elif (
            word.lower in ("and", "but")
            and index + 2 < len(words)
            and words[index + 1].lower in ("he", "she", "the", "his", "her")
            and _begins_clause(words, index + 1)
        ):
            yield begin, index
            begin = index + 1
    yield begin, len(words)


def _begins_clause(words: Sequence[ClauseWord], begin: int) -> bool:
    """Tell whether a subject and a verb begin at a token."""
    for index in range(begin + 1, min(begin + 8, len(words))):
        word = words[index].lower
        if word in AUXILIARIES or (word in verbs_by_form()[0] and _surely_finite(words, index, len(words))):
            return words[begin].lower not in PREPOSITIONS
        if word == "," or word in SUBORDINATORS:
            return False
    return False


def _surely_finite(words: Sequence[ClauseWord], index: int, end: int) -> bool:
    """Tell whether a past form is surely not a participle: `showed a mass`, but not `(a man) treated with insulin`."""
    word = words[index].lower
    verb = verbs_by_form()[0][word] if word in verbs_by_form()[0] else verbs_by_form()[2].get(word)
    if (
        verb is None
        or (index + 1 < end and words[index + 1].lower in AUXILIARIES)
        or word in ("cut", "felt", "presents", "reports", "notes", "results")
    ):
        return False
    following = words[index + 1].lower if index + 1 < end else ""
    if verb.past != verb.participle or following in DETERMINERS or "-" not in verb.object_markers:
        return True
    if verb.base in ("perform", "provide", "obtain", "order", "discuss", "recommend", "request", "note"):
        return False  # `Titer performed today` leaves out the auxiliary
    return following not in PREPOSITIONS | {"", ",", "today", "here"}


def _clause_end(words: Sequence[ClauseWord], begin: int, end: int) -> int:
    """Return where a verb's clause ends: before another clause, a relative clause or an afterthought."""
    for index in range(begin, end):
        word = words[index].lower
        following = words[index + 1].lower if index + 1 < end else ""
        if word == ",":
            next_comma = next((later for later in range(index + 1, end) if words[later].text == ","), end)
            words_inside = [other.lower for other in words[index + 1 : next_comma]]
            if following in SUBORDINATORS | {
                "with",
                "without",
                "resulting",
                "leading",
                "suggesting",
                "thus",
                "however",
            }:
                return index
            if following.endswith("ing") or following in ("followed", "consistent", "based", "given", "due"):
                return index
            words_inside = words_inside[
                : next(
                    (offset for offset, other in enumerate(words_inside) if other in ("that", "which", "who")),
                    len(words_inside),
                )
            ]
            if any(_is_finite(words, index + 1 + offset) for offset in range(len(words_inside))):
                return index
        elif word in ("which", "who", "whereas", "but", "although", "though", "where", "while", "whose"):
            return index
        elif word in ("and", "or"):
            verb_index = index + 2 if is_adverb(following) else index + 1
            if verb_index < end and (words[verb_index].lower in AUXILIARIES or _surely_finite(words, verb_index, end)):
                return index
            second = words[index + 2].lower if index + 2 < end else ""
            if following in verbs_by_form()[2] and second in DETERMINERS | {"that", "he", "she"}:
                return index
            if _begins_clause(words, index + 1) or (
                is_participle(following) and index + 2 < end and words[index + 2].lower in ("on", "with", "to", "by")
            ):
                return index
    return end


def _is_finite(words: Sequence[ClauseWord], index: int) -> bool:
    """Tell whether a word is a finite verb in any context: in lists, `increased` may be a participle."""
    word, following = words[index].lower, words[index + 1].lower if index + 1 < len(words) else ""
    verb = verbs_by_form()[0].get(word)
    return word in AUXILIARIES or (verb is not None and (verb.past != verb.participle or following in DETERMINERS))


def _parse_clause(text: str, words: Sequence[ClauseWord], begin: int, end: int) -> ParsedClause | None:
    start = begin
    lead = (begin, begin)
    while start < end and (is_adverb(words[start].lower) or words[start].text == ","):
        start += 1
    comma = next((i for i in range(start, min(start + 14, end)) if words[i].text == ","), None)
    if comma and not any(
        token.lower in AUXILIARIES or token.lower in verbs_by_form()[0] for token in words[start:comma]
    ):
        lead, start = (start, comma), comma + 1
    while start < end and is_adverb(words[start].lower):
        start += 1
    pronoun_index = next((i for i in range(start + 1, min(start + 6, end)) if words[i].lower in ("he", "she")), None)
    if pronoun_index and lead[0] == lead[1] and not any(_is_finite(words, i) for i in range(start, pronoun_index)):
        if any(
            words[i].lower in verbs_by_form()[2] or words[i].lower in verbs_by_form()[0]
            for i in range(start, pronoun_index)
        ):
            return None
        lead, start = (start, pronoun_index), pronoun_index  # `Postoperatively she developed`
    for index in range(start + 1, min(start + 11, end)):
        word = words[index].lower
        if word == "," or word in SUBORDINATORS:
            return None
        verb = verb_at(words, index, end)
        if word in AUXILIARIES and not verb:
            return None
        if not verb or (word not in AUXILIARIES and not _surely_finite(words, index, end)):
            continue
        subject_end = index
        while subject_end > start and is_adverb(words[subject_end - 1].lower):
            subject_end -= 1
        if not is_subject(words[start:subject_end]):
            return None
        if (
            verb[1] == "present"
            and verb[2] != "have"
            and words[subject_end - 1].lower.endswith("s")
            and words[subject_end - 1].lower != "s"
        ):
            return None
        return ParsedClause(
            text, words, (start, subject_end), (index, verb[0]), *verb[1:], _clause_end(words, verb[0], end), lead
        )
    return None


def _parse_relative_clause(text: str, words: Sequence[ClauseWord], begin: int, end: int) -> ParsedClause | None:
    """Parse `(a woman) who presented with cough`: what the sentence says about the patient."""
    for index in range(begin + 1, end - 2):
        if words[index].lower == "who" and any(word.lower in PEOPLE for word in words[max(begin, index - 6) : index]):
            verb = verb_at(words, index + 1, end)
            return (
                ParsedClause(
                    text, words, (index, index + 1), (index + 1, verb[0]), *verb[1:], _clause_end(words, verb[0], end)
                )
                if verb
                else None
            )
    return None


def is_subject(words: Sequence[ClauseWord]) -> bool:
    """Tell whether words form a subject that a question can name."""
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
    return not any(
        is_participle(word.lower) and following.lower in PREPOSITIONS | DETERMINERS for word, following in pairs
    )

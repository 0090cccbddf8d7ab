"""Inversion: turns a clause into a question, with its first auxiliary before the subject."""

from __future__ import annotations

import re
from typing import NamedTuple

from capr.documents import Span
from capr.supervise.clauses.grammar import ParsedClause
from capr.supervise.clauses.words import is_adverb

PATIENT = re.compile(
    r"(?:he|she|who|patient|(?:the|our|this|an?|one)\s+(?:[\w-]+\s+){0,6}?(?:patient|man|woman|male|"
    r"female|boy|girl|infant|child|lady|"
    r"gentleman|neonate|newborn|baby)(?:\s+with\s.+)?|(?:Mr|Mrs|Ms)\.\s+\w+)",
    re.IGNORECASE,
)


class ClauseQuestion(NamedTuple):
    """A question that a clause answers, with `{who}` for the patient."""

    kind: str
    words: str
    answer: Span


def invert(clause: ParsedClause, rest: str = "", negated: bool = True) -> str:
    """Put the first auxiliary of a clause before its subject. `rest` replaces everything after the verb."""
    begin, end = clause.verb
    auxiliary = clause.words[begin].lower
    words = [word for word in clause.lower_words(begin + 1, end) if not is_adverb(word)]
    negation = ["not"] if negated and clause.negated else []
    if clause.form in ("past", "present"):
        plural = clause.form == "present" and auxiliary in ("have", "do")
        auxiliary, words = "did" if clause.form == "past" else "do" if plural else "does", [clause.base]
    return " ".join([auxiliary, name_subject(clause), *negation, *words, rest]).strip()


def name_subject(clause: ParsedClause) -> str:
    """Return the subject as a question names it."""
    return "{who}" if is_patient(clause) else re.sub(r"^an?\s+", "the ", clause.phrase(*clause.subject))


def is_patient(clause: ParsedClause) -> bool:
    """Tell whether the clause is about the patient."""
    return PATIENT.fullmatch(clause.phrase(*clause.subject)) is not None

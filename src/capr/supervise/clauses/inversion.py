"""The clause as a question puts it: its first auxiliary before the subject."""

from __future__ import annotations

import re
from typing import NamedTuple

from capr.documents import Span
from capr.supervise.clauses.grammar import Clause
from capr.supervise.clauses.words import is_adverb

PATIENT = re.compile(
    r"(?:he|she|who|patient|(?:the|our|this|an?|one)\s+(?:[\w-]+\s+){0,6}?(?:patient|man|woman|male|"
    r"female|boy|girl|infant|child|lady|"
    r"gentleman|neonate|newborn|baby)(?:\s+with\s.+)?|(?:Mr|Mrs|Ms)\.\s+\w+)",
    re.IGNORECASE,
)


class Asked(NamedTuple):
    """A question that a clause answers, with `{who}` for the patient."""

    kind: str
    words: str
    answer: Span


def inverted(clause: Clause, rest: str = "", negated: bool = True) -> str:
    """The clause with its first auxiliary before the subject, and `rest` instead of what follows the verb."""
    begin, end = clause.verb
    first = clause.words[begin].lower
    words = [word for word in clause.lower(begin + 1, end) if not is_adverb(word)]
    no = ["not"] if negated and clause.negated else []
    if clause.form in ("past", "present"):
        plural = clause.form == "present" and first in ("have", "do")
        first, words = "did" if clause.form == "past" else "do" if plural else "does", [clause.base]
    return " ".join([first, subject(clause), *no, *words, rest]).strip()


def subject(clause: Clause) -> str:
    """As a question names it."""
    return "{who}" if is_patient(clause) else re.sub(r"^an?\s+", "the ", clause.said(*clause.subject))


def is_patient(clause: Clause) -> bool:
    """Whether the clause is about the patient."""
    return PATIENT.fullmatch(clause.said(*clause.subject)) is not None

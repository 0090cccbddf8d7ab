"""What can be asked of a clause, with the words that answer."""

from __future__ import annotations

import re
from collections.abc import Iterator

from capr.supervise.clauses.adjuncts import PERSON, Adjunct, adjuncts, lead
from capr.supervise.clauses.grammar import Clause
from capr.supervise.clauses.inversion import Asked, inverted, is_patient, subject
from capr.supervise.clauses.whether import TESTS, measured, numbers, whether
from capr.supervise.clauses.words import PREPOSITIONS, forms, is_adverb, verbs

REPORTING = frozenset(
    "report complain note deny describe state admit recall show reveal demonstrate suggest indicate "
    "present say think believe "
    "have confirm discuss recommend consider know feel".split()
)  # what follows them in time belongs to what they tell
DULL = frozenset(
    "question questions prescription attempt vitals "
    "examination exam treatment history results result findings finding course diagnosis condition "
    "evaluation workup level "
    "levels symptoms investigation investigations management therapy surgery procedure test tests "
    "study studies case cases "
    "report analysis patient patients decision rest remainder time diagnoses imaging assessment "
    "family plan cause reason".split()
)
ORGANISM = re.compile(r"\b(?:[A-Z]\.|[A-Z][a-z]+) [a-z]{4,}(?:us|um|is|ae|li|ns|es|la|ia)\b")
BUGS = re.compile(
    r"\b(?:Staphylococcus|Streptococcus|Escherichia|Klebsiella|Pseudomonas|Candida|Aspergillus|"
    r"Salmonella|Enterococcus|Mycobacterium|Cryptococcus|Listeria)\b"
)
MOVED = frozenset(
    "transferred admitted referred sent taken brought discharged moved rushed presented seen treated "
    "returned went evaluated".split()
)
FOUND = frozenset(
    "found seen noted located observed identified detected palpated visualized placed inserted felt "
    "localized situated discovered".split()
)
CAUSED = frozenset("lead cause result trigger induce prompt necessitate".split())


def asked(clause: Clause, drugs: frozenset[str]) -> Iterator[Asked]:
    """Everything that can be asked of a clause.

    Args:
        clause: of a note.
        drugs: the names of drugs in the note, in lower case.
    """
    around = adjuncts(clause)
    first = lead(clause)
    begin = clause.verb[1]
    end = around[0].begin if around else clause.end
    while (end > begin and clause.words[end - 1].lower in (",", "and", "likely", "possibly", "as")) or (
        end > begin and is_adverb(clause.words[end - 1].lower)
    ):
        end -= 1
    if first and first.sort == "when" and clause.lower(*clause.lead)[0] in ("during",):
        first = None
    core = clause.said(begin, end)
    whole = (
        core.split(" ")[-1] not in PREPOSITIONS
        and end - begin <= 12
        and not re.search(r"\b(?:that|which|who|because|although|if|it|they)\b", core)
    )
    extra = [
        one
        for one in [*around, *([first] if first else [])]
        if one.sort in ("when", "place", "site") and one.end - one.begin <= 7
    ]
    if whole:
        for one in [*around, *([first] if first else [])]:
            if one.sort == "cause" and around and around[0].sort in ("by", "for", "purpose"):
                continue  # the cause of that, not of what the clause tells
            yield from _around(clause, one, core, begin, end)
        yield from numbers(clause, begin, end)
        yield from _subject(clause, core, extra, drugs)
        yield from whether(clause, core, begin, end)
        if first and first.sort == "when" and clause.words[first.begin].lower in ("after", "following"):
            yield Asked(
                "what happened", f"What happened {_lowered(clause, first)}?", clause.span(clause.subject[0], clause.end)
            )
    yield from _object(clause, begin, end, extra, whole)
    yield from measured(clause, begin, end)


def _lowered(clause: Clause, one: Adjunct) -> str:
    words = clause.said(one.begin, one.end)
    return words[0].lower() + words[1:] if words[1:2].islower() else words


def _around(clause: Clause, one: Adjunct, core: str, begin: int, end: int) -> Iterator[Asked]:
    answer = clause.span(one.inner, one.end)
    base, main = clause.base, clause.words[clause.verb[1] - 1].lower
    said = clause.said(one.inner, one.end)
    bare = end == begin and is_patient(clause) and clause.form in ("copula",)
    if bare or (clause.form == "copula" and not core):
        return
    if (
        one.sort == "cause"
        or (one.sort == "purpose" and clause.form == "passive" and not clause.negated)
        or (one.sort == "for" and not clause.negated and clause.form in ("passive", "past"))
    ):
        yield Asked("why", f"Why {inverted(clause, core)}?", answer)
    elif one.sort == "when" and base not in REPORTING and clause.form not in ("copula", "modal") and not clause.negated:
        yield Asked("when", f"When {inverted(clause, core)}?", answer)
    elif one.sort == "lasting" and base not in REPORTING and not clause.negated:
        yield Asked("how long", f"How long {inverted(clause, core)}?", answer)
        yield Asked("how long", f"For how long {inverted(clause, core)}?", answer)
    elif (
        one.sort == "often"
        and base not in REPORTING
        and main not in ("advised", "instructed", "told", "asked")
        and clause.form != "copula"
    ):
        yield Asked("how often", f"How often {inverted(clause, core)}?", answer)
    elif one.sort == "by" and clause.form == "passive" and not clause.negated:
        if PERSON.search(said):
            yield Asked("who", f"By whom {inverted(clause, core)}?", answer)
            if not is_patient(clause) and main in forms()[0]:
                yield Asked("who", f"Who {main} {subject(clause)} {core}".strip() + "?", answer)
        elif main in (
            "confirmed",
            "treated",
            "managed",
            "diagnosed",
            "established",
            "controlled",
            "stopped",
            "achieved",
            "made",
            "approached",
            "removed",
            "resected",
            "closed",
            "corrected",
            "assessed",
            "excluded",
            "performed",
        ):
            yield Asked("how", f"How {inverted(clause, core)}?", clause.span(one.begin, one.end))
    elif (one.sort == "place" and main in MOVED and not core and clause.form in ("passive", "past")) or (
        one.sort == "site" and main in FOUND and not core and clause.form == "passive" and not clause.negated
    ):
        yield Asked("where", f"Where {inverted(clause)}?", answer)


def _object(clause: Clause, begin: int, end: int, extra: list[Adjunct], whole: bool) -> Iterator[Asked]:
    """`What did the culture grow?`, `What was she treated with?`"""
    if clause.negated or begin >= end or clause.base == "have" or clause.base not in verbs():
        return
    asks, first = verbs()[clause.base].asks, clause.words[begin].lower
    at, preposition = begin, ""
    if clause.form in ("passive", "modal passive"):
        if first in asks and first != "-":
            at, preposition = begin + 1, f" {first}"
        elif first == "to" and begin + 1 < end and clause.words[begin + 1].lower == "have":
            at, preposition = begin + 2, " to have"
        elif clause.base not in ("give", "prescribe") or not is_patient(clause) or first in PREPOSITIONS:
            return
    elif first in asks:
        at, preposition = begin + 1, f" {first}"
    elif "-" not in asks or first in PREPOSITIONS:
        return
    if at >= end or (clause.words[at].lower in ("no", "not", "that", "a", "any", "to") and end - at < 2):
        return
    words = clause.lower(at, end)
    if "then" in words or words[:2] == ["the", "patient"]:
        return
    if (
        words[0]
        in ("no", "not", "any", "to", "it", "this", "having", "good", "well", "himself", "herself", "continued")
        or words[0] in PREPOSITIONS
        or is_adverb(words[0])
    ):
        return
    if words[0] == "that":
        at, end = at + 1, clause.end
    elif "that" in words:
        end = at + words.index("that") if words.index("that") > 1 and not whole else end
    answer = clause.span(at, end)
    question = f"What {inverted(clause)}{preposition}"
    yield Asked("what", f"{question}?", answer)
    for one in extra:
        if one.sort == "when" or clause.base not in ("show", "reveal", "demonstrate"):
            yield Asked("what", f"{question} {_lowered(clause, one)}?", answer)


def _subject(clause: Clause, core: str, extra: list[Adjunct], drugs: frozenset[str]) -> Iterator[Asked]:
    """`What led to the fall?`, `Which drug was held for two days?`"""
    said = clause.said(*clause.subject)
    last = clause.words[clause.subject[1] - 1].lower
    if (
        is_patient(clause)
        or clause.negated
        or clause.form in ("copula", "modal", "modal passive", "present")
        or last in DULL
        or core.startswith("no ")
    ):
        return
    if {"her", "his", "their", "its", "and"} & set(said.lower().split()) and not PERSON.search(said):
        return
    if said.lower().startswith("no "):
        return
    which = "Who" if PERSON.search(said) else "What"
    if last in drugs:
        which = "Which drug"
    elif ORGANISM.fullmatch(said) or BUGS.match(said):
        which = "Which organism"
    elif TESTS.search(said) and clause.form == "passive":
        which = "Which test"
    if clause.base not in CAUSED and clause.form != "passive" and which == "What":
        return
    if clause.base in ("show", "reveal", "suggest", "note", "see", "consider", "think", "suspect", "report"):
        return
    verb = " ".join(word for word in clause.lower(*clause.verb) if not is_adverb(word))
    if which != "What" or clause.words[clause.verb[0]].lower not in ("were", "are"):
        verb = re.sub(r"^were\b", "was", verb) if which != "Who" else verb
    else:
        verb = re.sub(r"^were\b", "was", verb)
    answer = clause.span(*clause.subject)
    if core and (len(core.split()) > 1 or core.split()[0] not in PREPOSITIONS):
        yield Asked("which" if which.startswith("Which") else which.lower(), f"{which} {verb} {core}?", answer)
    for one in extra:
        yield Asked(
            "which" if which.startswith("Which") else which.lower(),
            re.sub(r"\s+", " ", f"{which} {verb} {core} {_lowered(clause, one)}?"),
            answer,
        )

"""Questions that a clause answers, with the spans that answer."""

from __future__ import annotations

import re
from collections.abc import Iterator

from capr.supervise.clauses.adjuncts import PERSON, Adjunct, find_adjuncts, find_lead
from capr.supervise.clauses.grammar import ParsedClause
from capr.supervise.clauses.inversion import ClauseQuestion, invert, is_patient, name_subject
from capr.supervise.clauses.words import PREPOSITIONS, is_adverb, verbs, verbs_by_form
from capr.supervise.clauses.yes_or_no import TESTS, ask_how_high, ask_how_many, ask_yes_or_no

REPORTING_VERBS = frozenset(
    "report complain note deny describe state admit recall show reveal demonstrate suggest indicate "
    "present say think believe "
    "have confirm discuss recommend consider know feel".split()
)  # a time after them belongs to the reported event
VAGUE_NOUNS = frozenset(
    "question questions prescription attempt vitals "
    "examination exam treatment history results result findings finding course diagnosis condition "
    "evaluation workup level "
    "levels symptoms investigation investigations management therapy surgery procedure test tests "
    "study studies case cases "
    "report analysis patient patients decision rest remainder time diagnoses imaging assessment "
    "family plan cause reason".split()
)
ORGANISM = re.compile(r"\b(?:[A-Z]\.|[A-Z][a-z]+) [a-z]{4,}(?:us|um|is|ae|li|ns|es|la|ia)\b")
GENUS = re.compile(
    r"\b(?:Staphylococcus|Streptococcus|Escherichia|Klebsiella|Pseudomonas|Candida|Aspergillus|"
    r"Salmonella|Enterococcus|Mycobacterium|Cryptococcus|Listeria)\b"
)
MOTION_VERBS = frozenset(
    "transferred admitted referred sent taken brought discharged moved rushed presented seen treated "
    "returned went evaluated".split()
)
LOCATION_VERBS = frozenset(
    "found seen noted located observed identified detected palpated visualized placed inserted felt "
    "localized situated discovered".split()
)
CAUSE_VERBS = frozenset("lead cause result trigger induce prompt necessitate".split())
MEANS_VERBS = frozenset(
    "confirmed treated managed diagnosed established controlled stopped achieved made approached removed "
    "resected closed corrected assessed excluded performed".split()
)


def ask_about(clause: ParsedClause, drugs: frozenset[str]) -> Iterator[ClauseQuestion]:
    """Yield all questions that a clause answers.

    Args:
        clause: a clause of a note.
        drugs: the names of drugs in the note, in lower case.
    """
    adjuncts = find_adjuncts(clause)
    lead = find_lead(clause)
    begin = clause.verb[1]
    end = adjuncts[0].begin if adjuncts else clause.end
    while (end > begin and clause.words[end - 1].lower in (",", "and", "likely", "possibly", "as")) or (
        end > begin and is_adverb(clause.words[end - 1].lower)
    ):
        end -= 1
    if lead and lead.kind == "when" and clause.lower_words(*clause.lead)[0] in ("during",):
        lead = None
    core = clause.phrase(begin, end)
    is_complete = (
        core.split(" ")[-1] not in PREPOSITIONS
        and end - begin <= 12
        and not re.search(r"\b(?:that|which|who|because|although|if|it|they)\b", core)
    )
    details = [
        adjunct
        for adjunct in [*adjuncts, *([lead] if lead else [])]
        if adjunct.kind in ("when", "place", "site") and adjunct.end - adjunct.begin <= 7
    ]
    if is_complete:
        for adjunct in [*adjuncts, *([lead] if lead else [])]:
            if adjunct.kind == "cause" and adjuncts and adjuncts[0].kind in ("by", "for", "purpose"):
                continue  # the cause belongs to that adjunct, not to the clause
            yield from _ask_about_adjunct(clause, adjunct, core, begin, end)
        yield from ask_how_many(clause, begin, end)
        yield from _ask_about_subject(clause, core, details, drugs)
        yield from ask_yes_or_no(clause, core, begin, end)
        if lead and lead.kind == "when" and clause.words[lead.begin].lower in ("after", "following"):
            yield ClauseQuestion(
                "what happened",
                f"What happened {_lowercase_start(clause, lead)}?",
                clause.span(clause.subject[0], clause.end),
            )
    yield from _ask_about_object(clause, begin, end, details, is_complete)
    yield from ask_how_high(clause, begin, end)


def _lowercase_start(clause: ParsedClause, adjunct: Adjunct) -> str:
    words = clause.phrase(adjunct.begin, adjunct.end)
    return words[0].lower() + words[1:] if words[1:2].islower() else words


def _ask_about_adjunct(
    clause: ParsedClause, adjunct: Adjunct, core: str, begin: int, end: int
) -> Iterator[ClauseQuestion]:
    answer = clause.span(adjunct.answer_begin, adjunct.end)
    base, main_verb = clause.base, clause.words[clause.verb[1] - 1].lower
    phrase = clause.phrase(adjunct.answer_begin, adjunct.end)
    is_bare = end == begin and is_patient(clause) and clause.form in ("copula",)
    if is_bare or (clause.form == "copula" and not core):
        return
    if (
        adjunct.kind == "cause"
        or (adjunct.kind == "purpose" and clause.form == "passive" and not clause.negated)
        or (adjunct.kind == "for" and not clause.negated and clause.form in ("passive", "past"))
    ):
        yield ClauseQuestion("why", f"Why {invert(clause, core)}?", answer)
    elif (
        adjunct.kind == "when"
        and base not in REPORTING_VERBS
        and clause.form not in ("copula", "modal")
        and not clause.negated
    ):
        yield ClauseQuestion("when", f"When {invert(clause, core)}?", answer)
    elif adjunct.kind == "lasting" and base not in REPORTING_VERBS and not clause.negated:
        yield ClauseQuestion("how long", f"How long {invert(clause, core)}?", answer)
        yield ClauseQuestion("how long", f"For how long {invert(clause, core)}?", answer)
    elif (
        adjunct.kind == "often"
        and base not in REPORTING_VERBS
        and main_verb not in ("advised", "instructed", "told", "asked")
        and clause.form != "copula"
    ):
        yield ClauseQuestion("how often", f"How often {invert(clause, core)}?", answer)
    elif adjunct.kind == "by" and clause.form == "passive" and not clause.negated:
        if PERSON.search(phrase):
            yield ClauseQuestion("who", f"By whom {invert(clause, core)}?", answer)
            if not is_patient(clause) and main_verb in verbs_by_form()[0]:
                yield ClauseQuestion("who", f"Who {main_verb} {name_subject(clause)} {core}".strip() + "?", answer)
        elif main_verb in MEANS_VERBS:
            yield ClauseQuestion("how", f"How {invert(clause, core)}?", clause.span(adjunct.begin, adjunct.end))
    elif (
        adjunct.kind == "place" and main_verb in MOTION_VERBS and not core and clause.form in ("passive", "past")
    ) or (
        adjunct.kind == "site"
        and main_verb in LOCATION_VERBS
        and not core
        and clause.form == "passive"
        and not clause.negated
    ):
        yield ClauseQuestion("where", f"Where {invert(clause)}?", answer)


def _ask_about_object(
    clause: ParsedClause, begin: int, end: int, details: list[Adjunct], is_complete: bool
) -> Iterator[ClauseQuestion]:
    """Ask `What did the culture grow?`, `What was she treated with?`."""
    if clause.negated or begin >= end or clause.base == "have" or clause.base not in verbs():
        return
    markers, first_word = verbs()[clause.base].object_markers, clause.words[begin].lower
    start, preposition = begin, ""
    if clause.form in ("passive", "modal passive"):
        if first_word in markers and first_word != "-":
            start, preposition = begin + 1, f" {first_word}"
        elif first_word == "to" and begin + 1 < end and clause.words[begin + 1].lower == "have":
            start, preposition = begin + 2, " to have"
        elif clause.base not in ("give", "prescribe") or not is_patient(clause) or first_word in PREPOSITIONS:
            return
    elif first_word in markers:
        start, preposition = begin + 1, f" {first_word}"
    elif "-" not in markers or first_word in PREPOSITIONS:
        return
    if start >= end or (clause.words[start].lower in ("no", "not", "that", "a", "any", "to") and end - start < 2):
        return
    words = clause.lower_words(start, end)
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
        start, end = start + 1, clause.end
    elif "that" in words:
        end = start + words.index("that") if words.index("that") > 1 and not is_complete else end
    answer = clause.span(start, end)
    question = f"What {invert(clause)}{preposition}"
    yield ClauseQuestion("what", f"{question}?", answer)
    for adjunct in details:
        if adjunct.kind == "when" or clause.base not in ("show", "reveal", "demonstrate"):
            yield ClauseQuestion("what", f"{question} {_lowercase_start(clause, adjunct)}?", answer)


def _ask_about_subject(
    clause: ParsedClause, core: str, details: list[Adjunct], drugs: frozenset[str]
) -> Iterator[ClauseQuestion]:
    """Ask `What led to the fall?`, `Which drug was held for two days?`."""
    phrase = clause.phrase(*clause.subject)
    last_word = clause.words[clause.subject[1] - 1].lower
    if (
        is_patient(clause)
        or clause.negated
        or clause.form in ("copula", "modal", "modal passive", "present")
        or last_word in VAGUE_NOUNS
        or core.startswith("no ")
    ):
        return
    if {"her", "his", "their", "its", "and"} & set(phrase.lower().split()) and not PERSON.search(phrase):
        return
    if phrase.lower().startswith("no "):
        return
    question_word = "Who" if PERSON.search(phrase) else "What"
    if last_word in drugs:
        question_word = "Which drug"
    elif ORGANISM.fullmatch(phrase) or GENUS.match(phrase):
        question_word = "Which organism"
    elif TESTS.search(phrase) and clause.form == "passive":
        question_word = "Which test"
    if clause.base not in CAUSE_VERBS and clause.form != "passive" and question_word == "What":
        return
    if clause.base in ("show", "reveal", "suggest", "note", "see", "consider", "think", "suspect", "report"):
        return
    verb = " ".join(word for word in clause.lower_words(*clause.verb) if not is_adverb(word))
    if question_word != "What" or clause.words[clause.verb[0]].lower not in ("were", "are"):
        verb = re.sub(r"^were\b", "was", verb) if question_word != "Who" else verb
    else:
        verb = re.sub(r"^were\b", "was", verb)
    answer = clause.span(*clause.subject)
    if core and (len(core.split()) > 1 or core.split()[0] not in PREPOSITIONS):
        yield ClauseQuestion(
            "which" if question_word.startswith("Which") else question_word.lower(),
            f"{question_word} {verb} {core}?",
            answer,
        )
    for adjunct in details:
        yield ClauseQuestion(
            "which" if question_word.startswith("Which") else question_word.lower(),
            re.sub(r"\s+", " ", f"{question_word} {verb} {core} {_lowercase_start(clause, adjunct)}?"),
            answer,
        )

"""What can be asked of a clause, with the words that answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from capr.documents import Span
from capr.supervise.clauses.adjuncts import NUMBER, PERSON, Adjunct, adjuncts, lead
from capr.supervise.clauses.grammar import AUXILIARIES, DETERMINERS, PREPOSITIONS, Clause, forms, is_adverb, verbs

PATIENT = re.compile(
    r"(?:he|she|patient|(?:the|our|this|an?|one)\s+(?:[\w-]+\s+){0,6}?(?:patient|man|woman|male|female|boy|girl|infant|child|lady|"
    r"gentleman|neonate|newborn|baby)(?:\s+with\s.+)?|(?:Mr|Mrs|Ms)\.\s+\w+)",
    re.IGNORECASE,
)
REPORTING = frozenset(
    "report complain note deny describe state admit recall show reveal demonstrate suggest indicate present say think believe "
    "have confirm discuss recommend consider know feel".split()
)  # what follows them in time belongs to what they tell
DULL = frozenset(
    "examination exam treatment history results result findings finding course diagnosis condition evaluation workup level "
    "levels symptoms investigation investigations management therapy surgery procedure test tests study studies case cases "
    "report analysis patient patients decision rest remainder time diagnoses imaging assessment family plan cause reason".split()
)
TESTS = re.compile(
    r"\b(?:CT|MRI|ultraso\w+|sonograph\w+|echocardiogra\w+|biops\w+|cultures?|x-?rays?|radiographs?|tomography|endoscopy|"
    r"colonoscopy|angiogra\w+|scan|bronchoscopy|electrocardiogram|ECG|EKG|EEG|puncture|gastroscopy|PET|scintigraphy)\b",
    re.IGNORECASE,
)
ORGANISM = re.compile(r"\b(?:[A-Z]\.|[A-Z][a-z]+) [a-z]{4,}(?:us|um|is|ae|li|ns|es|la|ia)\b")
BUGS = re.compile(r"\b(?:Staphylococcus|Streptococcus|Escherichia|Klebsiella|Pseudomonas|Candida|Aspergillus|Salmonella|Enterococcus|Mycobacterium|Cryptococcus|Listeria)\b")
MOVED = frozenset("transferred admitted referred sent taken brought discharged moved rushed presented seen treated returned went evaluated".split())
FOUND = frozenset("found seen noted located observed identified detected palpated visualized placed inserted felt localized situated discovered".split())
CAUSED = frozenset("lead cause result trigger induce prompt necessitate".split())
PLURAL_NOT = frozenset("mg mm cm years days weeks months hours minutes kg pounds percent times units-old lbs degrees ml g cc inches points was is has".split())
MEASURED = re.compile(
    r"(?:temperature|pressure|rate|saturation|count|level|creatinine|hemoglobin|haemoglobin|glucose|sodium|potassium|weight|"
    r"height|BMI|lactate|troponin|bilirubin|albumin|A1c|INR|pH|score|CRP|protein|fraction|ESR|calcium|ferritin|TSH|PSA)$",
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
    return "{who}" if is_patient(clause) else clause.said(*clause.subject)


def is_patient(clause: Clause) -> bool:
    """Whether the clause is about the patient."""
    return PATIENT.fullmatch(clause.said(*clause.subject)) is not None


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
    while end > begin and clause.words[end - 1].lower in (",", "and", "likely", "possibly", "as") or (end > begin and is_adverb(clause.words[end - 1].lower)):
        end -= 1
    if first and first.sort == "when" and clause.lower(*clause.lead)[0] in ("during",):
        first = None
    core = clause.said(begin, end)
    whole = end - begin <= 12 and not re.search(r"\b(?:that|which|who|because|although|if|it|they)\b", core)
    extra = [one for one in [*around, *([first] if first else [])] if one.sort in ("when", "place", "site") and one.end - one.begin <= 7]
    if whole:
        for one in [*around, *([first] if first else [])]:
            yield from _around(clause, one, core, begin, end)
        yield from _number(clause, begin, end)
        yield from _subject(clause, core, extra, drugs)
        yield from _whether(clause, core, begin, end)
        if first and first.sort == "when" and clause.words[first.begin].lower in ("after", "following"):
            yield Asked("what happened", f"What happened {_lowered(clause, first)}?", clause.span(clause.subject[0], clause.end))
    yield from _object(clause, begin, end, extra, whole)
    yield from _measured(clause, begin, end)


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
    if one.sort == "cause":
        yield Asked("why", f"Why {inverted(clause, core)}?", answer)
    elif one.sort == "purpose" and clause.form == "passive" and not clause.negated:
        yield Asked("why", f"Why {inverted(clause, core)}?", answer)
    elif one.sort == "when" and base not in REPORTING and clause.form not in ("copula", "modal") and not clause.negated:
        yield Asked("when", f"When {inverted(clause, core)}?", answer)
    elif one.sort == "lasting" and base not in REPORTING and not clause.negated:
        yield Asked("how long", f"How long {inverted(clause, core)}?", answer)
        yield Asked("how long", f"For how long {inverted(clause, core)}?", answer)
    elif one.sort == "often" and base not in REPORTING and clause.form != "copula":
        yield Asked("how often", f"How often {inverted(clause, core)}?", answer)
    elif one.sort == "by" and clause.form == "passive" and not clause.negated:
        if PERSON.search(said):
            verb = clause.said(clause.verb[0], clause.verb[1])
            yield Asked("who", f"By whom {inverted(clause, core)}?", answer)
            if not is_patient(clause):
                yield Asked("who", f"Who {main} {subject(clause)} {core}".strip() + "?", answer) if main in forms()[0] else Asked("who", f"By whom {inverted(clause, core)}?", answer)
            del verb
        elif main in ("confirmed", "treated", "managed", "diagnosed", "established", "controlled", "stopped", "achieved", "made", "approached", "removed", "resected", "closed", "corrected", "assessed", "excluded", "performed"):
            yield Asked("how", f"How {inverted(clause, core)}?", clause.span(one.begin, one.end))
    elif one.sort == "place" and main in MOVED and not core and clause.form in ("passive", "past"):
        yield Asked("where", f"Where {inverted(clause)}?", answer)
    elif one.sort == "site" and main in FOUND and not core and clause.form == "passive" and not clause.negated:
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
    if at >= end or clause.words[at].lower in ("no", "not", "that", "a", "any", "to") and end - at < 2:
        return
    words = clause.lower(at, end)
    if words[0] in ("no", "not", "any", "to", "it", "this", "having", "good", "well") or words[0] in PREPOSITIONS or is_adverb(words[0]):
        return
    if words[0] == "that":
        at += 1
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
    if is_patient(clause) or clause.negated or clause.form in ("copula", "modal", "modal passive", "present") or last in DULL or core.startswith("no "):
        return
    if {"her", "his", "their", "its", "and"} & set(said.lower().split()) and not PERSON.search(said):
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
        yield Asked("which" if which.startswith("Which") else which.lower(), re.sub(r"\s+", " ", f"{which} {verb} {core} {_lowered(clause, one)}?"), answer)


def _number(clause: Clause, begin: int, end: int) -> Iterator[Asked]:
    """`How many units of blood did he receive?`"""
    if clause.negated:
        return
    for place, stop, own in ((begin, end, False), (*clause.subject, True)):
        words = clause.lower(place, stop)
        if len(words) < 2 or not re.fullmatch(NUMBER, words[0]) or words[0] in ("a", "an", "one", "many", "1") or "." in words[0]:
            continue
        noun = next((word for word in words[1:4] if word.endswith("s") and len(word) > 3), "")
        if not noun or set(words[1:3]) & PLURAL_NOT or "/" in words[1] or words[1] in ("of", "to", "x"):
            continue
        rest = clause.said(place + 1, stop)
        if own:
            verb = " ".join(word for word in clause.lower(*clause.verb) if not is_adverb(word))
            more = clause.said(begin, end)
            yield Asked("how many", f"How many {rest} {verb} {more}".strip() + "?", clause.span(place, place + 1))
        elif clause.form in ("past", "perfect", "present", "modal"):
            yield Asked("how many", f"How many {rest} {inverted(clause)}?", clause.span(place, place + 1))
    lost = re.match(rf"(?:about|approximately|around|over|nearly)?\s*{NUMBER}\s?(?:kg|kilograms|pounds|lbs?)\b", clause.said(begin, end))
    if clause.base in ("lose", "gain") and lost and is_patient(clause):
        stop = begin + len(lost[0].split())
        yield Asked("how much", f"How much weight {inverted(clause)}?", clause.span(begin, stop))


def _measured(clause: Clause, begin: int, end: int) -> Iterator[Asked]:
    """`How high was the temperature?`"""
    said = clause.said(*clause.subject)
    if clause.form != "copula" or clause.negated or not MEASURED.search(said) or begin >= end:
        return
    match = re.match(r"(?:elevated at|high at|low at|increased at|decreased at|normal at)?\s*(?=\d)", clause.said(begin, end))
    if match and " and " not in said:
        at = begin + len(match[0].split())
        wh = "How low" if "low" in match[0] or "decreased" in match[0] else "How high"
        yield Asked("how high", f"{wh} {inverted(clause)}?", clause.span(at, end))
        yield Asked("what", f"What {inverted(clause)}?", clause.span(at, end))


def _whether(clause: Clause, core: str, begin: int, end: int) -> Iterator[Asked]:
    """`Had he struck his head?`, and what was so."""
    words = clause.lower(begin, end)
    verb_begin = clause.verb[0]
    if clause.negated and not (clause.form == "copula" and not core):
        question = inverted(clause, core, negated=False)
        yield Asked("yes or no", f"{question[0].upper()}{question[1:]}?", clause.span(verb_begin, max(end, clause.verb[1])))
    elif clause.base == "deny" and is_patient(clause) and words and len(words) <= 12:
        rest = re.sub(r"^(?:any|having)\s+", "", core)
        if re.search(r"\w+ing\b", rest.split()[0]) or re.search(r",|\b(?:and|or)\b", rest):
            return
        for question in (f"Did {{who}} have {rest}?", f"Did {{who}} report any {rest}?", f"Was there any {rest}?"):
            if not rest.split()[0] in DETERMINERS | AUXILIARIES | PREPOSITIONS:
                yield Asked("yes or no", question, clause.span(verb_begin, end))
    elif words and words[0] == "no" and len(words) > 1 and clause.form in ("past", "present", "perfect"):
        rest = clause.said(begin + 1, end)
        if words[1] not in ("longer", "more", "known", "other", "further"):
            yield Asked("yes or no", f"{inverted(clause)[0].upper()}{inverted(clause)[1:]} any {rest}?", clause.span(begin, end))
            if rest.startswith("evidence of ") and not is_patient(clause):
                yield Asked("yes or no", f"Was there any {rest} on the {subject(clause).removeprefix('the ')}?", clause.span(begin, end))
    elif clause.form == "passive" and is_patient(clause) and len(words) <= 8 and not clause.base == "diagnose" and words and words[0] not in ("to", "as"):
        question = inverted(clause, core)
        yield Asked("yes or no", f"{question[0].upper()}{question[1:]}?", clause.span(verb_begin, end))

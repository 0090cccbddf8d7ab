"""Whether something was so, how many there were, and how high."""

from __future__ import annotations

import re
from collections.abc import Iterator

from capr.supervise.clauses.adjuncts import NUMBER
from capr.supervise.clauses.grammar import Clause
from capr.supervise.clauses.inversion import Asked, inverted, is_patient, subject
from capr.supervise.clauses.words import AUXILIARIES, DETERMINERS, PREPOSITIONS, is_adverb

PLURAL_NOT = frozenset(
    "mg mm cm years days weeks months hours minutes kg pounds percent times units-old lbs degrees ml "
    "g cc inches points was is has".split()
)
HAPPENED = frozenset(
    "develop receive undergo require experience suffer show reveal demonstrate sustain confirm need".split()
)
EXAMINED = re.compile(
    r"\b(?:examination|exam|tests?|serology|urinalysis|smear|screen|screening|panel|assay)$", re.IGNORECASE
)
RESULT = re.compile(
    r"(?:normal|negative|unremarkable|abnormal|positive|inconclusive|within normal limits|"
    r"not diagnostic)(?: for [\w -]{3,40})?"
)
MEASURED = re.compile(
    r"(?:temperature|pressure|rate|saturation|count|level|creatinine|hemoglobin|haemoglobin|glucose|"
    r"sodium|potassium|weight|"
    r"height|BMI|lactate|troponin|bilirubin|albumin|A1c|INR|pH|score|CRP|protein|fraction|ESR|calcium|"
    r"ferritin|TSH|PSA)$",
    re.IGNORECASE,
)
TESTS = re.compile(
    r"\b(?:CT|MRI|ultraso\w+|sonograph\w+|echocardiogra\w+|biops\w+|cultures?|x-?rays?|radiographs?|"
    r"tomography|endoscopy|"
    r"colonoscopy|angiogra\w+|scan|bronchoscopy|electrocardiogram|ECG|EKG|EEG|puncture|gastroscopy|PET|scintigraphy)\b",
    re.IGNORECASE,
)


def numbers(clause: Clause, begin: int, end: int) -> Iterator[Asked]:
    """`How many units of blood did he receive?`"""
    if clause.negated:
        return
    for place, stop, own in ((begin, end, False), (*clause.subject, True)):
        words = clause.lower(place, stop)
        if (
            len(words) < 2
            or not re.fullmatch(NUMBER, words[0])
            or words[0] in ("a", "an", "one", "many", "several", "a few", "1")
            or "." in words[0]
        ):
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
    lost = re.match(
        rf"(?:about|approximately|around|over|nearly)?\s*{NUMBER}\s?(?:kg|kilograms|pounds|lbs?)\b",
        clause.said(begin, end),
    )
    if clause.base in ("lose", "gain") and lost and is_patient(clause):
        stop = begin + len(lost[0].split())
        yield Asked("how much", f"How much weight {inverted(clause)}?", clause.span(begin, stop))


def measured(clause: Clause, begin: int, end: int) -> Iterator[Asked]:
    """`How high was the temperature?`"""
    said = clause.said(*clause.subject)
    if clause.form != "copula" or clause.negated or not MEASURED.search(said) or begin >= end:
        return
    match = re.match(
        r"(?:elevated at|high at|low at|increased at|decreased at|normal at)?\s*(?=\d)", clause.said(begin, end)
    )
    if match and " and " not in f"{said} {clause.said(begin, end)}":
        at = begin + len(match[0].split())
        wh = "How low" if "low" in match[0] or "decreased" in match[0] else "How high"
        if not said.lower().endswith(("weight", "score", "ph")):
            yield Asked("how high", f"{wh} {inverted(clause)}?", clause.span(at, end))
        yield Asked("what", f"What {inverted(clause)}?", clause.span(at, end))


def whether(clause: Clause, core: str, begin: int, end: int) -> Iterator[Asked]:
    """`Had he struck his head?`, and what was so."""
    words = clause.lower(begin, end)
    verb_begin = clause.verb[0]
    if clause.negated and not (clause.form == "copula" and not core):
        question = inverted(clause, core, negated=False)
        yield Asked(
            "yes or no", f"{question[0].upper()}{question[1:]}?", clause.span(verb_begin, max(end, clause.verb[1]))
        )
    elif clause.base == "deny" and is_patient(clause) and words and len(words) <= 12:
        rest = re.sub(r"^(?:any|having)\s+", "", core)
        if re.search(r"\w+ing\b", rest.split()[0]) or re.search(r",|\b(?:and|or)\b", rest):
            return
        for question in (f"Did {{who}} have {rest}?", f"Did {{who}} report any {rest}?"):
            if rest.split()[0] not in DETERMINERS | AUXILIARIES | PREPOSITIONS:
                yield Asked("yes or no", question, clause.span(verb_begin, end))
    elif words and words[0] == "no" and len(words) > 1 and clause.form in ("past", "present", "perfect"):
        rest = clause.said(begin + 1, end)
        if words[1] not in ("longer", "more", "known", "other", "further"):
            yield Asked(
                "yes or no", f"{inverted(clause)[0].upper()}{inverted(clause)[1:]} any {rest}?", clause.span(begin, end)
            )
            if rest.startswith("evidence of ") and not is_patient(clause):
                yield Asked(
                    "yes or no",
                    f"Was there any {rest} on the {subject(clause).removeprefix('the ')}?",
                    clause.span(begin, end),
                )
    elif (
        clause.base == "have"
        and is_patient(clause)
        and words
        and len(words) <= 6
        and words[0] not in PREPOSITIONS | {"been", "to", "no"}
    ):
        if not re.search(r",|\band\b|\bhistory\b", core) and not any(is_adverb(word) for word in words):
            yield Asked("yes or no", f"Did {{who}} have {core}?", clause.span(verb_begin, end))
    elif clause.base in HAPPENED and clause.form == "past" and words and len(words) <= 6 and "no" not in words:
        if (
            not re.search(r",|\b(?:and|or)\b", core)
            and not any(is_adverb(word) for word in words)
            and words[0] not in PREPOSITIONS
        ):
            question = inverted(clause, core)
            yield Asked("yes or no", f"{question[0].upper()}{question[1:]}?", clause.span(verb_begin, end))
    elif (
        clause.form == "copula"
        and RESULT.fullmatch(core)
        and (TESTS.search(subject(clause)) or EXAMINED.search(subject(clause)))
    ):
        named = subject(clause).removeprefix("the ")
        if not re.match(r"(?:his|her)\b", named):
            yield Asked("what", f"What was the result of the {named}?", clause.span(begin, end))
            yield Asked("yes or no", f"Was anything abnormal found on the {named}?", clause.span(begin, end))
    elif (
        clause.form == "passive"
        and is_patient(clause)
        and len(words) <= 8
        and clause.base != "diagnose"
        and words
        and words[0] not in ("to", "as")
    ):
        question = inverted(clause, core)
        yield Asked("yes or no", f"{question[0].upper()}{question[1:]}?", clause.span(verb_begin, end))

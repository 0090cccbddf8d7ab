"""Questions about a clause whose answer is yes or no, a number or a value."""

from __future__ import annotations

import re
from collections.abc import Iterator

from capr.supervise.clauses.adjuncts import NUMBER
from capr.supervise.clauses.grammar import ParsedClause
from capr.supervise.clauses.inversion import ClauseQuestion, invert, is_patient, name_subject
from capr.supervise.clauses.words import AUXILIARIES, DETERMINERS, PREPOSITIONS, is_adverb

NOT_COUNTED = frozenset(
    "mg mm cm years days weeks months hours minutes kg pounds percent times units-old lbs degrees ml "
    "g cc inches points was is has".split()
)
EVENT_VERBS = frozenset(
    "develop receive undergo require experience suffer show reveal demonstrate sustain confirm need".split()
)
EXAMINATION = re.compile(
    r"\b(?:examination|exam|tests?|serology|urinalysis|smear|screen|screening|panel|assay)$", re.IGNORECASE
)
RESULT = re.compile(
    r"(?:normal|negative|unremarkable|abnormal|positive|inconclusive|within normal limits|"
    r"not diagnostic)(?: for [\w -]{3,40})?"
)
MEASURED_QUANTITY = re.compile(
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


def ask_how_many(clause: ParsedClause, begin: int, end: int) -> Iterator[ClauseQuestion]:
    """Ask `How many units of blood did he receive?`."""
    if clause.negated:
        return
    for start, stop, in_subject in ((begin, end, False), (*clause.subject, True)):
        words = clause.lower_words(start, stop)
        if (
            len(words) < 2
            or not re.fullmatch(NUMBER, words[0])
            or words[0] in ("a", "an", "one", "many", "several", "a few", "1")
            or "." in words[0]
        ):
            continue
        noun = next((word for word in words[1:4] if word.endswith("s") and len(word) > 3), "")
        if not noun or set(words[1:3]) & NOT_COUNTED or "/" in words[1] or words[1] in ("of", "to", "x"):
            continue
        rest = clause.phrase(start + 1, stop)
        if in_subject:
            verb = " ".join(word for word in clause.lower_words(*clause.verb) if not is_adverb(word))
            predicate = clause.phrase(begin, end)
            yield ClauseQuestion(
                "how many", f"How many {rest} {verb} {predicate}".strip() + "?", clause.span(start, start + 1)
            )
        elif clause.form in ("past", "perfect", "present", "modal"):
            yield ClauseQuestion("how many", f"How many {rest} {invert(clause)}?", clause.span(start, start + 1))
    weight = re.match(
        rf"(?:about|approximately|around|over|nearly)?\s*{NUMBER}\s?(?:kg|kilograms|pounds|lbs?)\b",
        clause.phrase(begin, end),
    )
    if clause.base in ("lose", "gain") and weight and is_patient(clause):
        stop = begin + len(weight[0].split())
        yield ClauseQuestion("how much", f"How much weight {invert(clause)}?", clause.span(begin, stop))


def ask_how_high(clause: ParsedClause, begin: int, end: int) -> Iterator[ClauseQuestion]:
    """Ask `How high was the temperature?`."""
    subject = clause.phrase(*clause.subject)
    if clause.form != "copula" or clause.negated or not MEASURED_QUANTITY.search(subject) or begin >= end:
        return
    match = re.match(
        r"(?:elevated at|high at|low at|increased at|decreased at|normal at)?\s*(?=\d)", clause.phrase(begin, end)
    )
    if match and " and " not in f"{subject} {clause.phrase(begin, end)}":
        start = begin + len(match[0].split())
        question_word = "How low" if "low" in match[0] or "decreased" in match[0] else "How high"
        if not subject.lower().endswith(("weight", "score", "ph")):
            yield ClauseQuestion("how high", f"{question_word} {invert(clause)}?", clause.span(start, end))
        yield ClauseQuestion("what", f"What {invert(clause)}?", clause.span(start, end))


def ask_yes_or_no(clause: ParsedClause, core: str, begin: int, end: int) -> Iterator[ClauseQuestion]:
    """Ask `Had he struck his head?`."""
    words = clause.lower_words(begin, end)
    verb_begin = clause.verb[0]
    if clause.negated and not (clause.form == "copula" and not core):
        question = invert(clause, core, negated=False)
        yield ClauseQuestion(
            "yes or no", f"{question[0].upper()}{question[1:]}?", clause.span(verb_begin, max(end, clause.verb[1]))
        )
    elif clause.base == "deny" and is_patient(clause) and words and len(words) <= 12:
        rest = re.sub(r"^(?:any|having)\s+", "", core)
        if re.search(r"\w+ing\b", rest.split()[0]) or re.search(r",|\b(?:and|or)\b", rest):
            return
        for question in (f"Did {{who}} have {rest}?", f"Did {{who}} report any {rest}?"):
            if rest.split()[0] not in DETERMINERS | AUXILIARIES | PREPOSITIONS:
                yield ClauseQuestion("yes or no", question, clause.span(verb_begin, end))
    elif words and words[0] == "no" and len(words) > 1 and clause.form in ("past", "present", "perfect"):
        rest = clause.phrase(begin + 1, end)
        if words[1] not in ("longer", "more", "known", "other", "further"):
            yield ClauseQuestion(
                "yes or no", f"{invert(clause)[0].upper()}{invert(clause)[1:]} any {rest}?", clause.span(begin, end)
            )
            if rest.startswith("evidence of ") and not is_patient(clause):
                yield ClauseQuestion(
                    "yes or no",
                    f"Was there any {rest} on the {name_subject(clause).removeprefix('the ')}?",
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
            yield ClauseQuestion("yes or no", f"Did {{who}} have {core}?", clause.span(verb_begin, end))
    elif clause.base in EVENT_VERBS and clause.form == "past" and words and len(words) <= 6 and "no" not in words:
        if (
            not re.search(r",|\b(?:and|or)\b", core)
            and not any(is_adverb(word) for word in words)
            and words[0] not in PREPOSITIONS
        ):
            question = invert(clause, core)
            yield ClauseQuestion("yes or no", f"{question[0].upper()}{question[1:]}?", clause.span(verb_begin, end))
    elif (
        clause.form == "copula"
        and RESULT.fullmatch(core)
        and (TESTS.search(name_subject(clause)) or EXAMINATION.search(name_subject(clause)))
    ):
        test = name_subject(clause).removeprefix("the ")
        if not re.match(r"(?:his|her)\b", test):
            yield ClauseQuestion("what", f"What was the result of the {test}?", clause.span(begin, end))
            yield ClauseQuestion("yes or no", f"Was anything abnormal found on the {test}?", clause.span(begin, end))
    elif (
        clause.form == "passive"
        and is_patient(clause)
        and len(words) <= 8
        and clause.base != "diagnose"
        and words
        and words[0] not in ("to", "as")
    ):
        question = invert(clause, core)
        yield ClauseQuestion("yes or no", f"{question[0].upper()}{question[1:]}?", clause.span(verb_begin, end))

"""Drugs: dose, frequency, route, reason and start."""

from __future__ import annotations

import re
from collections.abc import Iterator

from capr.annotate.mentions import Mention
from capr.documents import Span
from capr.segment.aspects import aspect_of
from capr.supervise.facts.dates import DATE
from capr.supervise.facts.note import PROBLEM_KINDS, VAGUE_PROBLEMS, Fact, Note, trim_span

NUMBER = r"(?:\d[\d,]*(?:\.\d+)?|\.\d+)"
UNIT = (
    r"(?:mg|mcg|µg|micrograms?|milligrams?|gm|g|grams?|units?|IU|mEq|mL|cc|puffs?|drops?|sprays?)"
    r"(?:/(?:kg|hr|hour|h|min|minute|day|mL|puff|actuation|dose)){0,2}"
)
DOSE = re.compile(
    rf"{NUMBER}(?:\s?(?:-|–|to|/)\s?{NUMBER})?[\s-]?{UNIT}(?![\w%])(?!\s*/)(?!\s*(?:to|-|–)\s*\d)", re.IGNORECASE
)
# Text between a drug and its dose.
GAP = re.compile(
    r"(?:[\s-]+(?:XL|XR|ER|SR|CR|EC|DR|LA|CD|HCl|HCT|HFA|DS|sodium|potassium|succinate|tartrate|mesylate|besylate|calcium|"
    r"acetate|maleate|fumarate|gel|cream|ointment|tablets?|capsules?|inhaler|nebulizer|drip|infusion|"
    r"extended[- ]release|enteric[- ]coated|delayed[- ]release))*"
    r"(?:\s*\([A-Za-z][^()\d\n]{1,30}\))?[\s,:]{0,3}"
    r"(?:(?:at|to|of|at a dose of|dose of|was increased to|increased to)\s+)?",
    re.IGNORECASE,
)
DOSE_BEFORE = re.compile(rf"({DOSE.pattern})\s+(?:dose\s+)?(?:of\s+)?(?:oral\s+|IV\s+|intravenous\s+)?$", re.IGNORECASE)
ROUTE = re.compile(
    r"(?:p\.\s?o\.|po|by mouth|orally|i\.\s?v\.|iv(?: push| drip| bolus)?|intravenous(?:ly)?|s\.\s?l\.|sl|"
    r"sublingual(?:ly)?|s\.c\.|sc|sq|s\.q\.|sub-?q|subcut(?:aneous(?:ly)?)?|i\.m\.|im|intramuscular(?:ly)?|topical(?:ly)?|inhaled|"
    r"(?:via|by) nebulizer|per rectum|rectally|transdermal(?:ly)?|intranasal(?:ly)?)(?!\w)",
    re.IGNORECASE,
)
TIMES = r"(?:once|twice|thrice|(?:one|two|three|four|five|six|\d)\s+times?)"
PERIOD = r"(?:day|morning|evening|night|week|month|hours?|hrs?|days|weeks|months|minutes|afternoon)"
SOME = r"(?:\d+(?:\s?(?:-|to)\s?\d+)?|two|three|four|six|eight|twelve)"
OFTEN = re.compile(
    rf"(?:{TIMES}(?:\s+(?:a|per|each|every)\s+{PERIOD}|\s+(?:daily|weekly|monthly|nightly))|"
    rf"every\s+(?:other\s+|{SOME}[\s-]+)?{PERIOD}|"
    r"[tq]\.?d\.?s\.?|q\.?\s?\d+(?:\s?-\s?\d+)?\s?(?:hours|hrs|hr|h|min|days?|d)\.?|"
    r"q\.?\s?(?:a\.?m|p\.?m|h\.?s|o\.?d|d|day|week|month|night)\.?|"
    r"[btq]\.?\s?i\.?\s?d\.?|[ob]\.?d\.?|daily|nightly|weekly|monthly|"
    r"(?:at|before) bedtime|at night|in the (?:morning|evening))"
    r"(?:,?\s+(?:at (?:bedtime|night)|in the (?:morning|evening)|with (?:meals|food)|as needed|p\.?r\.?n\.?))?(?!\w)",
    re.IGNORECASE,
)
FILLER = re.compile(r"(?:tablets?|tabs?|capsules?|caps?|one|daily dose|by|to be taken|taken|take)(?!\w)", re.IGNORECASE)
BETWEEN = re.compile(r"[\s,]*")
REASON = re.compile(
    r"[\s,]*(?:(?:as needed|p\.?r\.?n\.?)\s+(?:for\s+)?|for(?: (?:treatment|control|management|relief) of)?\s+|"
    r"to treat\s+)(?:(?:the|her|his|their|any|your)\s+)?",
    re.IGNORECASE,
)
PREVENTION = re.compile(r"\s+(?:cessation|prophylaxis|prevention|screening)\b", re.IGNORECASE)
SINCE = re.compile(rf"\s*,?\s+since\s+({DATE})", re.IGNORECASE)
TREATED_WITH = re.compile(
    r"[\s,]+(?:(?:is|was|has been|which|currently|well|previously|being)\s+){0,3}"
    r"(?:treated|managed|controlled|maintained)\s+(?:medically\s+)?(?:with|by|on)\s+(?:oral\s+|IV\s+|intravenous\s+)?",
    re.IGNORECASE,
)
LIST_SEPARATOR = re.compile(r"(?:\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+|\s*/\s*)")
# Names of drugs for things that are measured or consumed, not prescribed.
NOT_PRESCRIBED = frozenset(
    "oxygen alcohol ethanol tobacco water glucose sugar creatinine cholesterol contrast blood saline nicotine caffeine "
    "marijuana cannabis cocaine air salt fluid fluids medication medications drug drugs antibiotic antibiotics "
    "hemoglobin albumin iodine gadolinium protein calories triglycerides".split()
)
WITHOUT_DRUGS = frozenset({"allergies", "family history", "social history"})


def find_drugs(note: Note) -> Iterator[Fact]:
    """Find the dose, frequency, route, reason and start of each drug, and the drugs for a problem."""
    for drug in note.drugs():
        if not is_prescribed(note, drug):
            continue
        end = drug.span.end
        limit = note.sentence(end - 1).end
        dose = _dose(note.text, drug.span, limit)
        if dose:
            yield note.fact_about("dose", drug, dose)
            end = max(end, dose.end)
        for later_dose in DOSE.finditer(note.text, end, _until_next(note, drug, limit)):
            yield note.fact_about("dose", drug, Span(*later_dose.span()), certain=False)
        for kind, span in _route_and_frequency(note.text, end, limit):
            if dose or kind == "frequency":
                yield note.fact_about(kind, drug, span)
            end = span.end
        problem = _reason(note, end, limit)
        if problem and note.key(problem) != note.key(drug):
            yield note.fact_about("reason", drug, problem.span)
            if note.document[problem.span].lower() not in VAGUE_PROBLEMS:
                yield note.fact_about("treatment", problem, _list_span(note, _first_listed(note, drug)))
        since = SINCE.match(note.text, end, limit)
        if since:
            yield note.fact_about("taken since", drug, Span(*since.span(1)))


def find_treatments(note: Note) -> Iterator[Fact]:
    """Find treatments in `hypertension, well controlled on lisinopril and amlodipine`."""
    for problem in note.problems():
        match = TREATED_WITH.match(note.text, problem.span.end, note.sentence(problem.span.begin).end)
        drug = note.mention_at(match.end(), ("drug",)) if match else None
        if drug and not drug.negated and is_prescribed(note, drug):
            yield note.fact_about("treatment", problem, _list_span(note, drug))


def find_drugs_without_dose(note: Note) -> Iterator[tuple[str, str]]:
    """Yield drugs, by name and key, for which the note certainly gives no dose.

    No sentence that mentions the drug contains a number.
    """
    by_key: dict[str, list[Mention]] = {}
    for mention in note.mentions:
        if mention.kind == "drug":
            by_key.setdefault(note.key(mention), []).append(mention)
    for key, mentions in by_key.items():
        first = mentions[0]
        contexts = (
            note.text[note.sentence(mention.span.begin).begin : note.sentence(mention.span.end).end + 60]
            for mention in mentions
        )
        if (
            is_prescribed(note, first)
            and not first.negated
            and not any(re.search(r"\d", context) for context in contexts)
        ):
            yield " ".join(note.document[first.span].split()), key


def is_prescribed(note: Note, drug: Mention) -> bool:
    """Tell whether a mention is a drug to take, in a section about what the patient takes."""
    words = note.document[drug.span].lower()
    if drug.concept is None or words in NOT_PRESCRIBED or not words[:1].isalpha() or len(words) < 4:
        return False
    section = note.section(drug.span.begin)
    return section is None or aspect_of(section.heading or "") not in WITHOUT_DRUGS


def _dose(text: str, drug: Span, limit: int) -> Span | None:
    gap = GAP.match(text, drug.end, limit)
    dose = DOSE.match(text, gap.end() if gap else drug.end, limit)
    if dose:
        return Span(*dose.span())
    dose_before = DOSE_BEFORE.search(text, max(0, drug.begin - 40), drug.begin)
    return (
        Span(*dose_before.span(1))
        if dose_before and not re.search(rf"^{GAP.pattern}\d", text[drug.end : limit])
        else None
    )


def _until_next(note: Note, drug: Mention, limit: int) -> int:
    """Return where the next drug begins or, before that, the limit."""
    begins = (
        other.span.begin for other in note.mentions if other.kind == "drug" and other.span.begin > drug.span.begin
    )
    return min(next(begins, limit), limit)


def _route_and_frequency(text: str, begin: int, limit: int) -> Iterator[tuple[str, Span]]:
    """Yield route and frequency after a dose, in either order."""
    patterns = {"route": ROUTE, "frequency": OFTEN}
    for _ in range(4):
        blank = BETWEEN.match(text, begin, limit)
        begin = blank.end() if blank else begin
        hit = next(
            ((kind, match) for kind, pattern in patterns.items() if (match := pattern.match(text, begin, limit))), None
        )
        if hit:
            kind, match = hit
            yield kind, trim_span(text, *match.span())
            begin = match.end()
            del patterns[kind]
        elif filler := FILLER.match(text, begin, limit):
            begin = filler.end()
        else:
            return


def _reason(note: Note, end: int, limit: int) -> Mention | None:
    match = REASON.match(note.text, end, limit)
    problem = note.mention_at(match.end(), PROBLEM_KINDS) if match else None
    if problem is None or problem.negated or problem.family or PREVENTION.match(note.text, problem.span.end):
        return None
    return problem


def _first_listed(note: Note, drug: Mention) -> Mention:
    """Return the first drug of the list that leads up to this one."""
    for other in reversed([mention for mention in note.mentions if mention.span.end <= drug.span.begin]):
        if other.kind != "drug" or not LIST_SEPARATOR.fullmatch(note.text, other.span.end, drug.span.begin):
            break
        drug = other
    return drug


def _list_span(note: Note, drug: Mention) -> Span:
    """Return the span of the drug and those that follow it in a list."""
    end = drug.span.end
    while (separator := LIST_SEPARATOR.match(note.text, end)) and (
        next_drug := note.mention_at(separator.end(), ("drug",))
    ):
        end = next_drug.span.end
    return Span(drug.span.begin, end)

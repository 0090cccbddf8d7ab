"""Drugs: how much, how often, by which route, what for, since when."""

from __future__ import annotations

import re
from collections.abc import Iterator

from capr.annotate.aspects import aspect_of
from capr.annotate.mentions import Mention
from capr.documents import Span
from capr.supervise.facts.dates import DATE
from capr.supervise.facts.note import PROBLEMS, VAGUE, Fact, Note, trimmed

NUMBER = r"(?:\d[\d,]*(?:\.\d+)?|\.\d+)"
UNIT = (
    r"(?:mg|mcg|µg|micrograms?|milligrams?|gm|g|grams?|units?|IU|mEq|mL|cc|puffs?|drops?|sprays?)"
    r"(?:/(?:kg|hr|hour|h|min|minute|day|mL|puff|actuation|dose)){0,2}"
)
DOSE = re.compile(
    rf"{NUMBER}(?:\s?(?:-|–|to|/)\s?{NUMBER})?[\s-]?{UNIT}(?![\w%])(?!\s*/)(?!\s*(?:to|-|–)\s*\d)", re.IGNORECASE
)
# What may stand between a drug and its dose.
GAP = re.compile(
    r"(?:[\s-]+(?:XL|XR|ER|SR|CR|EC|DR|LA|CD|HCl|HCT|HFA|DS|sodium|potassium|succinate|tartrate|mesylate|besylate|calcium|"
    r"acetate|maleate|fumarate|gel|cream|ointment|tablets?|capsules?|inhaler|nebulizer|drip|infusion|"
    r"extended[- ]release|enteric[- ]coated|delayed[- ]release))*"
    r"(?:\s*\([A-Za-z][^()\d\n]{1,30}\))?[\s,:]{0,3}"
    r"(?:(?:at|to|of|at a dose of|dose of|was increased to|increased to)\s+)?",
    re.IGNORECASE,
)
BEFORE = re.compile(rf"({DOSE.pattern})\s+(?:dose\s+)?(?:of\s+)?(?:oral\s+|IV\s+|intravenous\s+)?$", re.IGNORECASE)
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
AVOIDED = re.compile(r"\s+(?:cessation|prophylaxis|prevention|screening)\b", re.IGNORECASE)
SINCE = re.compile(rf"\s*,?\s+since\s+({DATE})", re.IGNORECASE)
TREATED = re.compile(
    r"[\s,]+(?:(?:is|was|has been|which|currently|well|previously|being)\s+){0,3}"
    r"(?:treated|managed|controlled|maintained)\s+(?:medically\s+)?(?:with|by|on)\s+(?:oral\s+|IV\s+|intravenous\s+)?",
    re.IGNORECASE,
)
LISTED = re.compile(r"(?:\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+|\s*/\s*)")
# Named like drugs, but measured or used up rather than prescribed.
NOT_PRESCRIBED = frozenset(
    "oxygen alcohol ethanol tobacco water glucose sugar creatinine cholesterol contrast blood saline nicotine caffeine "
    "marijuana cannabis cocaine air salt fluid fluids medication medications drug drugs antibiotic antibiotics "
    "hemoglobin albumin iodine gadolinium protein calories triglycerides".split()
)
WITHOUT_DRUGS = frozenset({"allergies", "family history", "social history"})


def drugs(note: Note) -> Iterator[Fact]:
    """Dose, frequency, route, reason and start of each drug, and the drugs for a problem."""
    for drug in note.drugs():
        if not prescribed(note, drug):
            continue
        end = drug.span.end
        limit = note.sentence(end - 1).end
        dose = _dose(note.text, drug.span, limit)
        if dose:
            yield note.about("dose", drug, dose)
            end = max(end, dose.end)
        for other in DOSE.finditer(note.text, end, _until_next(note, drug, limit)):
            yield note.about("dose", drug, Span(*other.span()), sure=False)
        for kind, span in _how(note.text, end, limit):
            if dose or kind == "frequency":
                yield note.about(kind, drug, span)
            end = span.end
        problem = _reason(note, end, limit)
        if problem and note.key(problem) != note.key(drug):
            yield note.about("reason", drug, problem.span)
            if note.document[problem.span].lower() not in VAGUE:
                yield note.about("treatment", problem, _list(note, _first_listed(note, drug)))
        since = SINCE.match(note.text, end, limit)
        if since:
            yield note.about("taken since", drug, Span(*since.span(1)))


def treatments(note: Note) -> Iterator[Fact]:
    """`hypertension, well controlled on lisinopril and amlodipine`."""
    for problem in note.problems():
        found = TREATED.match(note.text, problem.span.end, note.sentence(problem.span.begin).end)
        drug = note.starting_at(found.end(), ("drug",)) if found else None
        if drug and not drug.negated and prescribed(note, drug):
            yield note.about("treatment", problem, _list(note, drug))


def undosed(note: Note) -> Iterator[tuple[str, str]]:
    """Drugs of which the note surely gives no dose, by name and key: no sentence with them has a number."""
    named: dict[str, list[Mention]] = {}
    for mention in note.mentions:
        if mention.kind == "drug":
            named.setdefault(note.key(mention), []).append(mention)
    for key, mentions in named.items():
        first = mentions[0]
        around = (note.text[note.sentence(m.span.begin).begin : note.sentence(m.span.end).end + 60] for m in mentions)
        if prescribed(note, first) and not first.negated and not any(re.search(r"\d", words) for words in around):
            yield " ".join(note.document[first.span].split()), key


def prescribed(note: Note, drug: Mention) -> bool:
    """Whether a drug is one that somebody takes, and stands where the note says what the patient takes."""
    words = note.document[drug.span].lower()
    if drug.concept is None or words in NOT_PRESCRIBED or not words[:1].isalpha() or len(words) < 4:
        return False
    section = note.section(drug.span.begin)
    return section is None or aspect_of(section.heading or "") not in WITHOUT_DRUGS


def _dose(text: str, drug: Span, limit: int) -> Span | None:
    gap = GAP.match(text, drug.end, limit)
    found = DOSE.match(text, gap.end() if gap else drug.end, limit)
    if found:
        return Span(*found.span())
    ahead = BEFORE.search(text, max(0, drug.begin - 40), drug.begin)
    return Span(*ahead.span(1)) if ahead and not re.search(rf"^{GAP.pattern}\d", text[drug.end : limit]) else None


def _until_next(note: Note, drug: Mention, limit: int) -> int:
    """Where the next drug begins, or the sentence ends."""
    begins = (
        other.span.begin for other in note.mentions if other.kind == "drug" and other.span.begin > drug.span.begin
    )
    return min(next(begins, limit), limit)


def _how(text: str, begin: int, limit: int) -> Iterator[tuple[str, Span]]:
    """Route and frequency that follow a dose, in either order."""
    wanted = {"route": ROUTE, "frequency": OFTEN}
    for _ in range(4):
        blank = BETWEEN.match(text, begin, limit)
        begin = blank.end() if blank else begin
        found = next(((kind, m) for kind, pattern in wanted.items() if (m := pattern.match(text, begin, limit))), None)
        if found:
            kind, match = found
            yield kind, trimmed(text, *match.span())
            begin = match.end()
            del wanted[kind]
        elif filler := FILLER.match(text, begin, limit):
            begin = filler.end()
        else:
            return


def _reason(note: Note, end: int, limit: int) -> Mention | None:
    found = REASON.match(note.text, end, limit)
    problem = note.starting_at(found.end(), PROBLEMS) if found else None
    if problem is None or problem.negated or problem.family or AVOIDED.match(note.text, problem.span.end):
        return None
    return problem


def _first_listed(note: Note, drug: Mention) -> Mention:
    """The first of the drugs that are listed up to this one."""
    for other in reversed([mention for mention in note.mentions if mention.span.end <= drug.span.begin]):
        if other.kind != "drug" or not LISTED.fullmatch(note.text, other.span.end, drug.span.begin):
            break
        drug = other
    return drug


def _list(note: Note, drug: Mention) -> Span:
    """The drug and those that are listed with it."""
    end = drug.span.end
    while (between := LISTED.match(note.text, end)) and (more := note.starting_at(between.end(), ("drug",))):
        end = more.span.end
    return Span(drug.span.begin, end)

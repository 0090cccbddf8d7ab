"""Dates of admission, operation and diagnosis, and durations of problems."""

from __future__ import annotations

import re
from collections.abc import Iterator

from capr.documents import Span
from capr.supervise.facts.note import PROBLEM_KINDS, Fact, Note, normalise_case, trim_span

MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
DATE = (
    r"(?:\[\*\*\d{4}-\d{1,2}-\d{1,2}\*\*\]|\d{1,2}/\d{1,2}/\d{2,4}|\d{4}-\d{1,2}-\d{1,2}|"
    rf"{MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}|\d{{1,2}}\s+{MONTH}\s+\d{{4}}|{MONTH}(?:\s+of)?,?\s+\d{{4}}|"
    r"(?<!\d)(?:19|20)\d\d(?![\d/-]))"
)
LABELLED = re.compile(
    rf"^[ \t]*(?:(admission date|date of admission|date admitted)|(discharge date|date of discharge)|"
    rf"(date of (?:surgery|procedure|operation)|(?:surgery|procedure|operation) date))\s*:\s*({DATE})",
    re.IGNORECASE | re.MULTILINE,
)
DISCHARGE = re.compile(rf"\bdischarge date\s*:\s*({DATE})", re.IGNORECASE)  # mostly on the line of the admission date
KINDS = ("admitted", "discharged", "operated")
DIAGNOSED = re.compile(
    r"[\s,(]+(?:which\s+)?(?:was\s+)?(?:first\s+|initially\s+|originally\s+)?"
    rf"(?:diagnosed|dx'?d?|found)\s*(?:in|on)?\s+({DATE})",
    re.IGNORECASE,
)
DIAGNOSED_WITH = re.compile(r"\bdiagnosed\s+with\s+(?:an?\s+|the\s+)?", re.IGNORECASE)
WHEN = re.compile(rf"\s+(?:in|on)\s+({DATE})", re.IGNORECASE)
OPERATION = re.compile(
    r"\b((?:(?:right|left|bilateral|total|partial|laparoscopic|radical|open|knee|hip|aortic valve|mitral valve|"
    r"cataract|carotid|rotator cuff|hernia|inguinal|umbilical|ACL|lumbar|cervical|cardiac|breast|"
    r"abdominal|vaginal)\s+){0,3}(?:\w{3,}ectomy|\w{3,}plasty|\w{3,}ostomy|craniotomy|CABG|bypass surgery|"
    r"cesarean section|c-section|(?:hip|knee|valve|shoulder) replacement|(?:hernia|ACL|rotator cuff) repair|"
    rf"fusion|cataract surgery|pacemaker placement|stent placement))\s*(?:,|in|on|\()\s*({DATE})",
    re.IGNORECASE,
)
COUNT = r"(?:\d+(?:\s?(?:-|to)\s?\d+)?|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|several|a few)"
LASTING = rf"{COUNT}[\s-]+(?:days?|weeks?|months?|years?|hours?)"
LASTED = re.compile(
    rf"\s+for\s+(?:the\s+)?(?:past|last|about|approximately|over)?\s*(?:the\s+)?({LASTING})(?!\w|\s*(?:ago|of)\b)",
    re.IGNORECASE,
)
HISTORY_OF = re.compile(
    rf"(?<![\w-])({LASTING})\s+history\s+of\s+(?:an?\s+|worsening\s+|progressive\s+)?", re.IGNORECASE
)
RETURN = re.compile(
    r"\b(?:follow(?:ed)?[\s-]?up|return|see (?:him|her|me|us|the patient)(?: back)?)"
    rf"(?:,?\s+(?:with|to|at|here|in the office|in clinic)\b[^.;,\n\d]{{0,50}}?)?\s+"
    rf"(in\s+(?:about\s+|approximately\s+)?{LASTING})",
    re.IGNORECASE,
)


def find_dates(note: Note) -> Iterator[Fact]:
    """Find the dates of events."""
    text = note.text
    for match in LABELLED.finditer(text):
        kind = KINDS[next(group for group in range(3) if match[group + 1])]
        yield Fact(kind, "", kind, Span(*match.span(4)))
    for match in DISCHARGE.finditer(text):
        yield Fact("discharged", "", "discharged", Span(*match.span(1)))
    for match in OPERATION.finditer(text):
        if not re.search(r"\b(?:mother|father|brother|sister)\b", note.sentence(match.start()).of(text), re.IGNORECASE):
            subject = normalise_case(match[1])
            yield Fact("operation date", subject, subject, Span(*match.span(2)))
    for problem in note.problems():
        if diagnosis := DIAGNOSED.match(text, problem.span.end, note.sentence(problem.span.begin).end):
            yield note.fact_about("diagnosed", problem, Span(*diagnosis.span(1)))
    for match in DIAGNOSED_WITH.finditer(text):
        mention = note.mention_at(match.end(), PROBLEM_KINDS)
        date = WHEN.match(text, mention.span.end) if mention and not mention.family and not mention.negated else None
        if mention and date:
            yield note.fact_about("diagnosed", mention, Span(*date.span(1)))


def find_durations(note: Note) -> Iterator[Fact]:
    """Find how long a problem has lasted, and when the patient comes back."""
    text = note.text
    for problem in note.problems():
        if match := LASTED.match(text, problem.span.end, note.sentence(problem.span.begin).end):
            yield note.fact_about("lasted", problem, Span(*match.span(1)))
    for match in HISTORY_OF.finditer(text):
        mention = note.mention_at(match.end(), PROBLEM_KINDS)
        if mention and not mention.family:
            yield note.fact_about("lasted", mention, Span(*match.span(1)))
    for match in RETURN.finditer(text):
        yield Fact("follow-up", "", "follow-up", trim_span(text, *match.span(1)))

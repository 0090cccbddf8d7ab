"""Tests: measured values, for the tests of measurements.tsv, and the results of examinations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from capr.documents import CaprError, Span
from capr.supervise.facts.note import Fact, Note, count_words, normalise_case, trim_span

VERB = (
    r"(?:\s+(?:level|count|value|reading|today|currently|initially))?[ \t]{0,2}\n?"
    r"(?:[:=]|\bis\b|\bwas\b|\bof\b|\bat\b|\bwere\b|-(?=\d)|\bmeasured(?: at)?\b|\bestimated at\b|"
    r"\b(?:was |is )?found to be\b|\bcame back at\b|\b(?:elevated|low|down|up) (?:at|to)\b)?"
    r"[ \t]{0,2}\n?(?:about\s+|approximately\s+)?"
)
VALUE = (
    r"([<>]?\s?\d[\d,]*(?:\.\d+)?(?:/\d{2,3}(?!\d))?"
    r"(?:\s?(?:%|mg/dL|g/dL|mmol/L|mEq/L|µmol/L|ng/mL|pg/mL|ng/dL|mcg/dL|U/L|IU/L|units/L|mm ?Hg|kg/m2|kg|lbs?|"
    r"pounds|cm|bpm|beats per minute|degrees|K/uL|x10\^?9/L|/uL|seconds|mm/hr?|mg/L|copies/mL|liters?|°\s?[CF])"
    r"(?![\w/]))?)"
)
NOT_FOLLOWED_BY = (
    r"(?![\w%+]|[.,/:]\d|\s?(?:mg|mcg|mEq|units?|g|tablets?|ml)\b(?!/)|\*?\s*(?:->|→|to|-|–)\s*\d|[ \t]{2,}[\d<.-]|"
    r"\s*(?:days?|weeks?|years?|months?|hours?|times|doses|ft|feet|oz)\b)"
)
SHOWS = r"(?:show(?:ed|s)|demonstrate[ds]|reveal(?:ed|s)|grew|(?:was|is) (?:notable|significant|remarkable) for)"
EXAMINED = re.compile(
    r"\b((?:(?:chest|abdominal|pelvic|head|brain|renal|liver|hepatic|knee|hip|spine|lumbar|cervical|thoracic|right|"
    r"left|bilateral|upper|lower|extremity|cardiac|transthoracic|transesophageal|carotid|thyroid|breast|repeat|"
    r"pulmonary|urine|blood|sputum|wound|bone|marrow|skin|stress|hand|wrist|shoulder|elbow|ankle|foot|sinus|"
    r"portable|venous)\s+){0,4}"
    r"(?:CT(?: angiogram| scan)?|CTA|MRI(?: scan)?|MRA|PET(?:[-/]CT)?(?: scan)?|x-?rays?|radiographs?|CXR|KUB|"
    r"echocardiogram|echo|TTE|TEE|ultrasound|sonogram|doppler|EKG|ECG|electrocardiogram|EEG|EMG|colonoscopy|EGD|"
    r"endoscopy|bronchoscopy|biopsy|cystoscopy|angiogram|angiography|catheterization|mammogram|urinalysis|"
    r"cultures?|stress test|spirometry|pulmonary function tests?)"
    rf"(?:\s+of\s+(?:the\s+|her\s+|his\s+)?[\w-]+(?:\s+(?!{SHOWS}|which|that|was|were|is)[\w-]+){{0,3}}?)?)"
    r"(?:,?\s+(?:(?:was|were)\s+)?(?:today|performed|obtained|done|taken|on admission|in the office|also|again)){0,3}"
    rf"\s+{SHOWS}\s+(?:that\s+|evidence of\s+)?",
    re.IGNORECASE,
)
RESULT_END = re.compile(
    r"[.;](?=\s|$)|\n\s*\n|\n\s*[-•*]|,\s+and\s+\w+ed\b|,?\s+(?:in which|which|but|however|although|while)\b|$"
)
TREND = re.compile(
    r"[^.;\d]{0,40}?\b(?:improved|decreas|increas|down|up|rose|rising|fell|falling|peak|trend|went|came|now|from)\w*",
    re.IGNORECASE,
)
MAX_RESULT_WORDS = 20
NOT_A_RESULT = re.compile(
    r"\b(?:goal|target|normal|reference|range|once|until|when|maximum|peak|max|mother|father|brother|sister|if|should|baseline)\b",
    re.IGNORECASE,
)


@cache
def value_patterns() -> dict[str, re.Pattern[str]]:
    """Read measurements.tsv: for each test the pattern of its name and value in notes."""
    patterns = {}
    lines = files("capr.supervise.facts").joinpath("measurements.tsv").read_text("utf-8").splitlines()
    for number, line in enumerate(lines[1:], 2):
        name, tab, spellings = line.partition("\t")
        if not tab or not spellings:
            raise CaprError(
                f"measurements.tsv, line {number}: {line!r} is not a test with spellings. Fix: put a tab between them."
            )
        patterns[name] = re.compile(
            rf"(?<![\w/-])(?:{spellings})(?:\s*\([A-Za-z0-9 ]{{2,12}}\))?{VERB}{VALUE}{NOT_FOLLOWED_BY}", re.IGNORECASE
        )
    return patterns


@cache
def mention_patterns() -> dict[str, re.Pattern[str]]:
    """Return for each test a pattern that matches all its mentions in a note."""
    table = files("capr.supervise.facts").joinpath("measurements.tsv").read_text("utf-8").splitlines()[1:]
    rows = (line.partition("\t") for line in table)
    return {name: re.compile(rf"(?<![\w-])(?:{spellings})(?!\w)", re.IGNORECASE) for name, _, spellings in rows}


def find_values(note: Note) -> Iterator[Fact]:
    """Find measured values."""
    text = note.text
    for name, pattern in value_patterns().items():
        for match in pattern.finditer(text):
            sentence = note.sentence(match.start())
            if not NOT_A_RESULT.search(text, max(sentence.begin, match.start() - 40), match.start()):
                trend = TREND.match(text, match.end(), max(match.end(), sentence.end))
                end = trend.end() if trend else match.end(1)
                yield Fact("value", name, name, trim_span(text, match.start(1), end), certain=not trend)


def find_examination_results(note: Note) -> Iterator[Fact]:
    """Find what an examination showed."""
    text = note.text
    for match in EXAMINED.finditer(text):
        sentence = note.sentence(match.start())
        end = RESULT_END.search(text, match.end(), max(match.end(), sentence.end))
        answer = trim_span(text, match.end(), end.start() if end else sentence.end)
        if answer.begin < answer.end and 1 <= count_words(text, answer) <= MAX_RESULT_WORDS:
            subject = normalise_case(match[1])
            yield Fact("shown", subject, subject, Span(*answer))

"""Fields: short sections whose heading asks the question (fields.tsv), and the patient's age and habits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from capr.documents import CaprError
from capr.segment.aspects import aspect_of
from capr.segment.headings import normalised
from capr.supervise.facts.note import Fact, Note, count_words, trim_span
from capr.supervise.facts.problems import OTHER_PERSON, RELATIVE

MAX_ANSWER_WORDS = 20
AGE = re.compile(r"\b(\d{1,3}[\s-]?(?:year|yr|month|week)s?[\s-]?old|\d{1,3} ?(?:y/o|yo|y\.o\.))(?!\w)", re.IGNORECASE)
HABITS = {
    "smoking": re.compile(r"smok|tobacco|cigarette|pack[- ]?(?:a|per|year)", re.IGNORECASE),
    "alcohol": re.compile(r"alcohol|\bETOH\b|drinks|\bbeers?\b|\bwine\b", re.IGNORECASE),
    "illicit drugs": re.compile(r"illicit|recreational|drug use|cocaine|marijuana|heroin", re.IGNORECASE),
    "living": re.compile(r"\blives? (?:with|alone|in|at)\b", re.IGNORECASE),
}
OCCUPATION = re.compile(
    r"\b(?:works? as|worked as|is employed as|is a retired|occupation:)\s+((?:an?\s+)?[a-z][a-z -]{3,40}?)"
    r"(?=[.,;\n(]|\s+(?:and|for|at|in|but|who|with|which|that|until)\b)",
    re.IGNORECASE,
)
REACTION = re.compile(
    r"\s*(?:\(|[-–—:]\s*|,?\s+(?:causes?|caused|which causes?|gives? (?:him|her))\s+)(?!\()([A-Za-z][^()\n;.]{3,60})"
)
# A body that refers to another section, or that has several parts.
ELSEWHERE = re.compile(r"\n\s*\n|^(?:same|see|as above|as below|as noted)\b", re.IGNORECASE)
LABEL = re.compile(r"\s{2,}[A-Z][A-Za-z ]{2,30}:")  # the next field on the same line


@cache
def headings() -> dict[str, str]:
    """Read fields.tsv: normalised headings, with the kind of question that their sections answer."""
    kinds: dict[str, str] = {}
    lines = files("capr.supervise.facts").joinpath("fields.tsv").read_text("utf-8").splitlines()
    for number, line in enumerate(lines[1:], 2):
        kind, tab, names = line.partition("\t")
        if not tab or any(name != normalised(name) or name in kinds for name in names.split("|")):
            raise CaprError(
                f"fields.tsv, line {number}: {line!r} is not a kind with new normalised headings. "
                "Fix: put a tab between them, and list each heading once."
            )
        kinds |= dict.fromkeys(names.split("|"), kind)
    return kinds


def find_fields(note: Note) -> Iterator[Fact]:
    """Find short sections whose heading asks a question."""
    for section in note.sections:
        kind = headings().get(normalised((section.heading or "").split(" | ")[-1]))
        if kind and section.heading_span:
            label = LABEL.search(note.text, *section.body)
            answer = trim_span(note.text, section.body.begin, label.start() if label else section.body.end)
            words = answer.of(note.text)
            if (
                answer.begin < answer.end
                and count_words(note.text, answer) <= MAX_ANSWER_WORDS
                and not ELSEWHERE.search(words)
            ):
                yield Fact(kind, "", kind, answer)


def find_allergies(note: Note) -> Iterator[Fact]:
    """Find the reactions to drugs in the allergies section."""
    for mention in note.mentions:
        section = note.section(mention.span.begin)
        if mention.kind != "drug" or mention.negated or not section or aspect_of(section.heading or "") != "allergies":
            continue
        if match := REACTION.match(note.text, mention.span.end, section.span.end):
            end = note.text.find(", and", match.start(1), match.end(1))
            answer = trim_span(note.text, match.start(1), end if end > 0 else match.end(1))
            names_drug = any(other.kind == "drug" and answer.covers(other.span) for other in note.mentions)
            if answer.begin < answer.end and count_words(note.text, answer) <= MAX_ANSWER_WORDS and not names_drug:
                yield note.fact_about("reaction", mention, answer)


def find_personal_details(note: Note) -> Iterator[Fact]:
    """Find age, habits and occupation."""
    text = note.text
    for match in AGE.finditer(text):
        if not RELATIVE.search(note.sentence(match.start()).of(text)):
            yield Fact("age", "", "age", trim_span(text, *match.span(1)))
    for match in OCCUPATION.finditer(text):
        if not RELATIVE.search(text, note.sentence(match.start()).begin, match.start()):
            yield Fact("occupation", "", "occupation", trim_span(text, *match.span(1)))
    for section in note.sections:
        if aspect_of(section.heading or "") != "social history":
            continue
        for sentence in note.sentences:
            if not section.body.covers(sentence) or count_words(text, sentence) > MAX_ANSWER_WORDS:
                continue
            for kind, pattern in HABITS.items():
                if pattern.search(sentence.of(text)) and not (
                    kind != "living" and OTHER_PERSON.search(sentence.of(text))
                ):
                    yield Fact(kind, "", kind, trim_span(text, *sentence))

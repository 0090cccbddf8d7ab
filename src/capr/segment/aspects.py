"""Aspects: what a section is about, whatever its heading says.

The table aspects.tsv contains the 27 aspects of WikiSection with their representative headings, the aspects that
MedQuAD and HealthQA add, and the sections of clinical notes. Each aspect has the headings that mean it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from capr.documents import CaprError
from capr.segment.headings import normalised

DOMAINS = ("article", "note", "both")
SPLIT = re.compile(r" \| | and |&|/", re.IGNORECASE)
TRANSLITERATED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss", "–": "-"})


@dataclass(frozen=True, slots=True)
class Aspect:
    """An aspect with its headings, questions and cues: a row of the table.

    Attributes:
        name: a short name in lower case.
        domain: the kind of document that has such sections: `article`, `note` or `both`.
        heading: the representative heading, which stands for the aspect in the input of a model.
        synonyms: other headings that mean the aspect.
        questions: questions about the aspect, with `{}` for the entity. Search uses the first one.
        cues: words that show that a passage is about the aspect, whatever its heading says.
    """

    name: str
    domain: str
    heading: str
    synonyms: tuple[str, ...]
    questions: tuple[str, ...]
    cues: tuple[str, ...] = ()


@cache
def aspects() -> Mapping[str, Aspect]:
    """Return all aspects by name."""
    table: dict[str, Aspect] = {}
    owners: dict[str, str] = {}
    lines = files("capr.segment").joinpath("aspects.tsv").read_text("utf-8").splitlines()
    for number, line in enumerate(lines[1:], 2):
        columns = line.split("\t")
        if len(columns) != 6 or columns[1] not in DOMAINS or columns[0] in table:
            fix = "write a new aspect, its domain, heading, synonyms, questions and cues, separated by tabs"
            raise CaprError(f"aspects.tsv, line {number}: {line[:60]!r} is not a row. Fix: {fix}.")
        name, domain, heading, *list_columns = columns
        aspect = Aspect(name, domain, heading, *(tuple(filter(None, column.split("|"))) for column in list_columns))
        for form in {name, heading, *aspect.synonyms}:
            if owners.setdefault(normalised(form), name) != name:
                owner = owners[normalised(form)]
                raise CaprError(f"aspects.tsv, line {number}: {form!r} means {owner!r} already. Fix: keep one of them.")
        table[name] = aspect
    return table


@cache
def _by_heading() -> Mapping[str, str]:
    forms = ((form, aspect.name) for aspect in aspects().values() for form in (aspect.heading, *aspect.synonyms))
    return {normalised(form): name for form, name in forms} | {normalised(name): name for name in aspects()}


@cache
def _cue() -> re.Pattern[str]:
    return re.compile("|".join(re.escape(cue) for aspect in aspects().values() for cue in aspect.cues), re.IGNORECASE)


@cache
def _by_cue() -> Mapping[str, str]:
    return {cue: aspect.name for aspect in aspects().values() for cue in aspect.cues}


def cued(text: str) -> list[str]:
    """Return the names of the aspects whose cues a text contains, in the order of their first cues.

    >>> cued("It is inherited in an autosomal recessive pattern. Mutations in the GAA gene cause it.")
    ['inheritance', 'genetics']
    """
    return list(dict.fromkeys(_by_cue()[cue.lower()] for cue in _cue().findall(text)))


def aspect_of(heading: str) -> str:
    """Return the name of the aspect that a heading means; for an unknown heading, the normalised heading.

    In a heading path (`A | B`), the innermost known heading counts.

    >>> aspect_of("PMHx:"), aspect_of("Physical Exam | Lungs"), aspect_of("Dawn song")
    ('past medical history', 'physical examination', 'dawn song')
    """
    for part in reversed(heading.split(" | ")):
        if (name := _by_heading().get(normalised(part))) is not None:
            return name
    return normalised(heading)


def heading(aspect: str) -> str:
    """Return the representative heading of an aspect; for an unknown aspect, the aspect in lower case.

    >>> heading("risk"), heading("Dawn song")
    ('risk factors', 'dawn song')
    """
    entry = aspects().get(aspect_of(aspect))
    return entry.heading if entry else aspect.lower()


def keys(heading: str) -> list[str]:
    """Return the keys of a heading in CDV's aspect space.

    A heading is split at ` | `, `and`, `&` and `/`. Each part loses its accents and punctuation, digits become `#`, and
    spaces become `_`. `abstract` becomes `description`.

    Reference: Arnold et al., Learning Contextualized Document Representations for Healthcare Answer Retrieval, 2020,
    and its released code.

    >>> keys("Signs and symptoms"), keys("Stage 12 – Naïve"), keys("Abstract")
    (['signs', 'symptoms'], ['stage_#_naive'], ['description'])
    """
    result = []
    for part in SPLIT.split(heading):
        words = "description" if part.strip().lower() == "abstract" else part.strip()
        words = unicodedata.normalize("NFD", words.translate(TRANSLITERATED))
        words = re.sub(r"[-_/]+", " ", words)
        words = re.sub(r"[^\w\s]", "", "".join(c for c in words if not unicodedata.combining(c)))
        key = re.sub(r"\s+", "_", re.sub(r"\d+", "#", words).strip()).lower()
        if key:
            result.append(key)
    return result

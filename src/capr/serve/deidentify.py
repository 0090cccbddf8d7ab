"""De-identification: hides identifying details before a text leaves the server.

A `Deidentifier` finds the spans to hide, and each of their characters becomes one `█`. The text keeps its length, so
every span stays valid. To use another one, write a class with the method `find`, and start the server with
`--deidentify module:name`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, Protocol

from capr.documents import CaprError, Span

HIDDEN = "█"
MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|(?-i:May|MAY)|June?|July?|Aug(?:ust)?|Sept?(?:ember)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)(?![a-z])\.?"
)
DAY = r"\d{1,2}(?:st|nd|rd|th)?"
# MR and MS in capitals are also a scan and a disease, and DR a kind of tablet, so they count as titles only with a dot.
TITLE = r"(?:(?:Drs?|Mrs?|Ms|Mx|Miss|Prof(?:essor)?|MRS|DRS|PROF|(?<!NOT )(?<!TO )MISS)\b\.?|(?:DR|MR|MS)\.)"
PARTICLE = r"(?:(?:van|von|zu|der|den|ter|ten|de|del|della|di|da|dos|du|la|le|el|al|bin|ibn|st\.?)[ ]+)"
INITIAL = r"(?:[A-Z]\b\.?[ ]*)"
NAME = rf"{PARTICLE}{{0,3}}[A-ZÀ-ÖØ-ÞĀ-Ž][\w'’-]+"
# A person is at least two names. The lookahead keeps the label of the next field out: `Patient: Ann Lee DOB: ...`.
FURTHER_NAME = rf"(?:[ ]+(?!\w+[ ]?[:#]){INITIAL}?{NAME})"
PERSON = rf"(?:{NAME},[ ]*{INITIAL}{{0,2}}{NAME}|{INITIAL}{{0,2}}{NAME}{FURTHER_NAME}){FURTHER_NAME}?"
LABEL = (
    r"(?i:(?:full |legal )?name|patient(?: name|'s name)?|pt(?: name)?|author|attending(?: physician| surgeon)?|surgeon"
    r"|(?:referring |primary care )?(?:physician|provider)|pcp|resident|radiologist|pathologist)"
)
BY = r"(?i:\b(?:(?:co-?)?signed|dictated|authored|transcribed)(?: electronically)? by)"
# Words that begin a value which is not a name: `Patient: Alert And Oriented`.
NO_NAME = (
    r"(?i:(?:alert|as|awake|cardiology|critical|denies|emergency|family|female|for|general|has|in|intensive|internal|is"
    r"|male|medical|no|none|not|on|please|primary|remains|reports|same|see|seen|stable|states|surgical|the|unable"
    r"|unchanged|unknown|was|well|will)\b)"
)
# Not PA, which is also a view of the chest. DO and NP are ordinary words and places unless they end the phrase.
CREDENTIAL = (
    r"(?:(?:M\.?D|R\.?N|Ph\.?D|PharmD|MBBS|MBChB|FRCP|FACP|FACC|DNP|APRN|CRNA|LPN|BSN|FNP|PA-C)(?!\w)"
    r"|(?:D\.?O|N\.?P)\.?[ ]*(?:[.,;)]|$))"
)
# Each match of a rule is hidden, or only its group `name` if it has one.
RULES = tuple(
    re.compile(pattern)
    for pattern in (
        r"\b\d{4}([-/.])\d{1,2}\1\d{1,2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?\b",  # 2024-03-18, 2024/3/18
        r"\b(?:19|2[01])\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:T?\d{4}(?:\d{2})?)?\b",  # 20240318
        r"\b\d{1,2}([/.-])\d{1,2}\1(?:\d{4}|\d{2})\b",  # 3/18/2024, 18.3.24
        rf"(?i)\b\d{{1,2}}([/.-]?){MONTH}(?:\1(?:\d{{4}}|\d{{2}}))?\b",  # 18-Mar-2024
        rf"(?i)\b{DAY}\.?(?:[ ]+of)?[ ]+{MONTH},?(?:[ ]+\d{{4}})?\b",  # 18 March 2024
        rf"(?i)\b{MONTH}[ -]+{DAY}(?:,?[ -]+\d{{4}})?\b",  # March 18, 2024
        rf"(?i)\b{MONTH},?[ /-]+\d{{4}}\b",  # March 2024
        r"(?<![\w.])(?:\+?\d{1,3}[ .-]?)?(?:\(\d{3}\)[ ]?|\d{3}[ .-])\d{3}[ .-]\d{4}\b",  # (617) 555-0134
        r"(?<![\w.])\+?1?[2-9]\d{2}[2-9]\d{6}\b",  # 6175550134
        r"(?<![\w.])\+\d[\d ]{7,15}\d\b",  # +44 20 7946 0958
        r"(?<![\w.])0(?:\d{9,10}|\d{2,4}[ /-]\d{6,8})\b",  # 0171 2345678
        r"(?<![\w.])0(?:\d{2}[ -]\d{4}[ -]\d{4}|\d{3,4}[ -]\d{3}[ -]\d{3,4})\b",  # 020 7946 0958
        r"\b\d{3}-\d{2}-\d{4}\b",  # a social security number
        r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b",
        r"(?i)\b(?:MRN|medical record(?: number| no\.?)?|record number|patient id|account(?: number)?|acct)\b"
        r"\s*(?:(?:[:#.]|no)\s*)*[A-Z]{0,3}-?\d[\d-]{3,}",
        rf"\b{TITLE}[ ]{{0,3}}\n?[ ]{{0,3}}{INITIAL}{{0,3}}{NAME}(?:[ ]+{INITIAL}?{NAME})?",
        rf"(?m)(?:^|[|\t]|[ ]{{2}})[ ]{{0,3}}{LABEL}[ ]{{0,3}}:[ ]{{0,9}}(?!{NO_NAME})(?P<name>{PERSON})",
        rf"(?i:\bpatient(?:'s)? name)[ ]{{0,3}}:[ ]{{0,9}}(?!{NO_NAME})(?P<name>{INITIAL}{{0,2}}{NAME})",
        rf"{BY}[ ]{{0,3}}:?[ ]{{0,9}}(?!{NO_NAME})(?P<name>{PERSON})",
        rf"(?m)(?<![\w'’-])(?P<name>{INITIAL}{{0,2}}{NAME}{FURTHER_NAME}{{1,2}})(?=,[ ]?{CREDENTIAL})",
    )
)
NAMES = re.compile(
    r"(?i)name|author|provider|physician|attending|surgeon|doctor|nurse|signed|dictated|consultant|resident"
)
NUMBERS = re.compile(r"(?i)mrn|ssn|phone|fax|e-?mail|address|account|insurance")
DATES = re.compile(r"(?i)date|born|birth|dob|admi|discharge|time")
# Fields that stay unmasked because users filter by them: see docs/guides/serve-a-department.md.
VISIBLE_FIELDS = ("patient", "file", "source", "type")
DEGREES = frozenset("md do phd rn np pa jr sr ii iii dr mr mrs ms prof the and of for".split())


class Deidentifier(Protocol):
    """Finds the spans that identify a person."""

    def find(self, text: str, metadata: Mapping[str, Any]) -> Iterable[Span]:
        """Return the spans of a text to hide.

        Args:
            text: a document, title, heading, or value of the metadata.
            metadata: the metadata of the document, which may have the names of the patient and of the author.
        """


class Rules:
    """Find names, dates, telephone and record numbers, and e-mail addresses.

    It knows names from the metadata, after titles (Dr., Mr.), after labels (Patient:, Signed by) and before credentials
    (, MD).

    Rules miss some names. Do not rely on them for readers who must never see a name.

    >>> text = "Seen by Dr. Ames on 3/18/2024, MRN: 4471902. Ms Lee may call (617) 555-0134."
    >>> mask(text, Rules().find(text, {}))
    'Seen by ███ ████ on █████████, ████ ███████. ██ ███ may call █████ ████████.'
    """

    def find(self, text: str, metadata: Mapping[str, Any]) -> Iterator[Span]:
        for rule in RULES:
            for match in rule.finditer(text):
                yield Span(*match.span("name" if "name" in rule.groupindex else 0))
        identifiers = sorted(_identifiers(metadata), key=len, reverse=True)
        if identifiers:
            words = "|".join(map(re.escape, identifiers))
            for match in re.finditer(rf"(?<!\w)(?:{words})(?:['’]s)?(?!\w)", text, re.IGNORECASE):
                yield Span(*match.span())


def load_deidentifier(setting: str) -> Deidentifier | None:
    """Return the de-identifier that a setting names: `rules` or `module:name`; None for an empty setting."""
    if not setting:
        return None
    if setting == "rules":
        return Rules()
    module, _, name = setting.partition(":")
    try:
        attribute = getattr(import_module(module), name)
        deidentifier = attribute() if isinstance(attribute, type) else attribute
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        fix = "use rules, or the module:name of a class with a method find(text, metadata)"
        raise CaprError(f"there is no de-identification {setting!r} ({error}). Fix: {fix}.") from error
    if not callable(getattr(deidentifier, "find", None)):
        raise CaprError(f"{setting} cannot de-identify. Fix: give it a method find(text, metadata).")
    return deidentifier  # type: ignore[no-any-return]


def mask(text: str, spans: Iterable[Span]) -> str:
    """Return the text with the characters of the spans hidden, at the same length; white space stays."""
    characters = list(text)
    for span in spans:
        for position in range(max(0, span.begin), min(len(characters), span.end)):
            if not characters[position].isspace():
                characters[position] = HIDDEN
    return "".join(characters)


def mask_metadata(metadata: Mapping[str, Any], by: Deidentifier) -> dict[str, Any]:
    """Return metadata with names, numbers and days masked. Years and the fields in `VISIBLE_FIELDS` stay."""
    return {
        name: value if name in VISIBLE_FIELDS and not _has_fields(value) else _mask_value(name, value, metadata, by)
        for name, value in metadata.items()
    }


def _has_fields(value: Any) -> bool:
    """Return whether a value contains fields of its own, which may hold names."""
    return isinstance(value, Mapping) or (isinstance(value, list | tuple) and any(map(_has_fields, value)))


def _mask_value(name: str, value: Any, metadata: Mapping[str, Any], by: Deidentifier) -> Any:
    if isinstance(value, Mapping):
        return {str(inner): _mask_value(str(inner), item, metadata, by) for inner, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mask_value(name, item, metadata, by) for item in value]
    if value is None or isinstance(value, bool):
        return value
    text = str(value)
    if NAMES.search(name) or NUMBERS.search(name):
        return mask(text, [Span(0, len(text))])
    if DATES.search(name):
        year = re.match(r"\d{4}(?!\d)", text)
        return mask(text, [Span(4 if year else 0, len(text))])
    return mask(text, by.find(text, metadata)) if isinstance(value, str) else value


def _identifiers(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield the words of names and the numbers in the metadata."""
    for name, value in metadata.items():
        for part in value if isinstance(value, list | tuple) else [value]:
            if isinstance(part, Mapping):
                yield from _identifiers(part)
            elif isinstance(part, str | int) and not isinstance(part, bool):
                if NAMES.search(name):
                    yield from (w for w in re.findall(r"[^\W\d_]{2,}", str(part)) if w.casefold() not in DEGREES)
                elif NUMBERS.search(name) and len(str(part)) >= 4:
                    yield str(part)

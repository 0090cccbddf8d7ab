"""De-identification: hides what names a person before a text leaves the server.

A `Deidentifier` says which characters to hide, and each of these becomes one `█`. So a text is as long as before, and
every span still fits. To use another one, write a class with the method `find`, and start the server with
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
# MR and MS in capitals are also a scan and a disease, and DR a kind of tablet: only with a dot are they titles.
TITLE = r"(?:(?:Drs?|Mrs?|Ms|Mx|Miss|Prof(?:essor)?|MRS|DRS|PROF|(?<!NOT )(?<!TO )MISS)\b\.?|(?:DR|MR|MS)\.)"
PARTICLE = r"(?:(?:van|von|zu|der|den|ter|ten|de|del|della|di|da|dos|du|la|le|el|al|bin|ibn|st\.?)[ ]+)"
INITIAL = r"(?:[A-Z]\b\.?[ ]*)"
NAME = rf"{PARTICLE}{{0,3}}[A-ZÀ-ÖØ-ÞĀ-Ž][\w'’-]+"
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
        r"(?<![\w.])0(?:\d{9,10}|\d{2,4}[ /-]\d{6,8})\b",  # 0171 1234567
        r"(?<![\w.])0(?:\d{2}[ -]\d{4}[ -]\d{4}|\d{3,4}[ -]\d{3}[ -]\d{3,4})\b",  # 020 7946 0958
        r"\b\d{3}-\d{2}-\d{4}\b",  # a social security number
        r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b",
        r"(?i)\b(?:MRN|medical record(?: number| no\.?)?|record number|patient id|account(?: number)?|acct)\b"
        r"\s*(?:(?:[:#.]|no)\s*)*[A-Z]{0,3}-?\d[\d-]{3,}",
        rf"\b{TITLE}[ ]{{0,3}}\n?[ ]{{0,3}}{INITIAL}{{0,3}}{NAME}(?:[ ]+{INITIAL}?{NAME})?",
    )
)
NAMES = re.compile(
    r"(?i)name|author|provider|physician|attending|surgeon|doctor|nurse|signed|dictated|consultant|resident"
)
NUMBERS = re.compile(r"(?i)mrn|ssn|phone|fax|e-?mail|address|account|insurance")
DATES = re.compile(r"(?i)date|born|birth|dob|admi|discharge|time")
HANDLES = ("patient", "file", "source", "type")  # by which documents are filtered; see docs/serving.md
DEGREES = frozenset("md do phd rn np pa jr sr ii iii dr mr mrs ms prof the and of for".split())


class Deidentifier(Protocol):
    """Finds what names a person."""

    def find(self, text: str, metadata: Mapping[str, Any]) -> Iterable[Span]:
        """What to hide of a text: of a document, its title, a heading, or a value of its metadata.

        Args:
            text: any of these.
            metadata: of the document, which may tell the names of the patient and of who wrote it.
        """


class Rules:
    """Names that the metadata tell, and after Dr. or Mr.; dates, telephone numbers, record numbers, e-mail addresses.

    Rules find much, and not all. Whoever must not see a name should not be given the text.

    >>> text = "Seen by Dr. Ames on 3/18/2024, MRN: 4471902. Ms Lee may call (617) 555-0134."
    >>> masked(text, Rules().find(text, {}))
    'Seen by ███ ████ on █████████, ████ ███████. ██ ███ may call █████ ████████.'
    """

    def find(self, text: str, metadata: Mapping[str, Any]) -> Iterator[Span]:
        for rule in RULES:
            for match in rule.finditer(text):
                yield Span(*match.span())
        known = sorted(_known(metadata), key=len, reverse=True)
        if known:
            words = "|".join(map(re.escape, known))
            for match in re.finditer(rf"(?<!\w)(?:{words})(?:['’]s)?(?!\w)", text, re.IGNORECASE):
                yield Span(*match.span())


def deidentifier(given: str) -> Deidentifier | None:
    """The one that was named: `rules`, or `module:name`; None for an empty name."""
    if not given:
        return None
    if given == "rules":
        return Rules()
    module, _, name = given.partition(":")
    try:
        found = getattr(import_module(module), name)
        made = found() if isinstance(found, type) else found
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        fix = "use rules, or the module:name of a class with a method find(text, metadata)"
        raise CaprError(f"there is no de-identification {given!r} ({error}). Fix: {fix}.") from error
    if not callable(getattr(made, "find", None)):
        raise CaprError(f"{given} cannot de-identify. Fix: give it a method find(text, metadata).")
    return made  # type: ignore[no-any-return]


def masked(text: str, spans: Iterable[Span]) -> str:
    """A text of the same length with some characters hidden; blanks stay."""
    found = list(text)
    for span in spans:
        for place in range(max(0, span.begin), min(len(found), span.end)):
            if not found[place].isspace():
                found[place] = HIDDEN
    return "".join(found)


def masked_metadata(metadata: Mapping[str, Any], by: Deidentifier) -> dict[str, Any]:
    """Metadata without names, numbers and days; of a date the year stays, and what is filtered by stays whole."""
    return {
        name: value if name in HANDLES and not _has_names(value) else _masked_value(name, value, metadata, by)
        for name, value in metadata.items()
    }


def _has_names(value: Any) -> bool:
    """Whether there are further names in a value, and not just what is filtered by."""
    return isinstance(value, Mapping) or (isinstance(value, list | tuple) and any(map(_has_names, value)))


def _masked_value(name: str, value: Any, metadata: Mapping[str, Any], by: Deidentifier) -> Any:
    if isinstance(value, Mapping):
        return {str(inner): _masked_value(str(inner), one, metadata, by) for inner, one in value.items()}
    if isinstance(value, list | tuple):
        return [_masked_value(name, one, metadata, by) for one in value]
    if value is None or isinstance(value, bool):
        return value
    text = str(value)
    if NAMES.search(name) or NUMBERS.search(name):
        return masked(text, [Span(0, len(text))])
    if DATES.search(name):
        year = re.match(r"\d{4}(?!\d)", text)
        return masked(text, [Span(4 if year else 0, len(text))])
    return masked(text, by.find(text, metadata)) if isinstance(value, str) else value


def _known(metadata: Mapping[str, Any]) -> Iterator[str]:
    """The words of names, and the numbers, that the metadata have."""
    for name, value in metadata.items():
        for part in value if isinstance(value, list | tuple) else [value]:
            if isinstance(part, Mapping):
                yield from _known(part)
            elif isinstance(part, str | int) and not isinstance(part, bool):
                if NAMES.search(name):
                    yield from (w for w in re.findall(r"[^\W\d_]{2,}", str(part)) if w.casefold() not in DEGREES)
                elif NUMBERS.search(name) and len(str(part)) >= 4:
                    yield str(part)

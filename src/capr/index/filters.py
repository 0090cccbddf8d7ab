"""Filters: conditions on documents and passages that every search result matches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from capr.annotate import Mention
from capr.annotate.context import FLAGS
from capr.documents import CaprError, Document
from capr.segment.aspects import aspect_of
from capr.text.digest import plain

# Fields that capr computes. A metadata name that begins with # gets another #, so that the two never collide.
ASPECT, ENTITY, DAY, ID = "#aspect", "#entity", "#day", "#document"
NAMES = {"aspect": ASPECT, "section": ASPECT, "document": ID, "id": ID}
PASSAGE_NAMES = (ASPECT, ENTITY)  # fields of passages; all others are fields of documents
EXACT = ("patient", ID, ENTITY)  # fields compared with case: P1 and p1 may be two patients
FIRST, LAST = "0000-00-00", "9999-99-99"
Period = tuple[str, str]  # a first and a last day
DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?(?=$|[T ])", re.ASCII)
SYNTAX = "write name=value, name!=value, name=begin*, name=@FILE with a value on each line, or date=2023-01..2023-06"


@dataclass(frozen=True, slots=True)
class Condition:
    """A field must have one of the values, or none of them if `exclude` is true."""

    name: str
    values: frozenset[str]
    exclude: bool = False


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions on documents and passages; a result matches all of them.

    Attributes:
        conditions: conditions on fields.
        since, until: the first and the last day, `2023-01-31`; empty for no limit. A limit excludes
            documents without a date.
        days: periods (first and last day); if there are any, the date must be in one of them.
        not_days: periods that must not contain the date.
        entities: codes; the passage must mention one of them.
        without: properties (negated, family ...) that this mention must not have.
    """

    conditions: tuple[Condition, ...] = ()
    since: str = ""
    until: str = ""
    days: tuple[Period, ...] = ()
    not_days: tuple[Period, ...] = ()
    entities: tuple[str, ...] = ()
    without: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.conditions or self.periods or self.not_days or self.entities)

    @property
    def periods(self) -> tuple[Period, ...]:
        """The periods that may contain the date, within `since` and `until`; empty if any date passes."""
        low, high = self.since or FIRST, self.until or LAST
        if not self.days:
            return ((low, high),) if self.since or self.until else ()
        return tuple((max(low, since), min(high, until)) for since, until in self.days)

    def __and__(self, other: Filters) -> Filters:
        """Return filters that require both."""
        days = self.days or other.days
        if self.days and other.days:
            days = tuple((max(a, c), min(b, d)) for a, b in self.days for c, d in other.days)
        return Filters(
            self.conditions + other.conditions,
            max(self.since, other.since),
            min(filter(None, (self.until, other.until)), default=""),
            days,
            self.not_days + other.not_days,
            self.entities or other.entities,
            self.without | other.without,
        )

    def about(self, codes: Iterable[str]) -> Filters:
        """Return the same filters with entities, whose mentions `without` restricts."""
        return replace(self, entities=tuple(codes))

    @property
    def entity_values(self) -> frozenset[str]:
        """The facts about entities; a passage must have one of them."""
        allowed = [i for i in range(1 << len(FLAGS)) if not any(i >> FLAGS.index(f) & 1 for f in self.without)]
        return frozenset(f"{code} {i}" for code in self.entities for i in allowed)

    @classmethod
    def of(cls, given: Filters | Mapping[str, Any] | Iterable[str] | str | None, strict: bool = True) -> Filters:
        """Return the filters that a user wrote.

        A mapping has values or lists of them (`{"patient": ["p1", "p2"], "date": "2023..", "without": "negated"}`); a !
        after a name (`{"type!": "letter"}`) excludes the values. A text or a list of texts has `name=value`,
        `name!=value`, `name=@FILE` and `date=FROM..TO`. Values of the same name are alternatives, and a * matches any
        characters. A file has one value on each line. A period that ends before it begins is an error, unless `strict`
        is false, as for the restrictions of tokens that older versions stored.

        >>> Filters.of(["type=Discharge summary", "date=2023..2024-02"])
        ... # doctest: +NORMALIZE_WHITESPACE
        Filters(conditions=(Condition(name='type', values=frozenset({'discharge summary'}), exclude=False),),
                since='2023-01-01', until='2024-02-31', days=(), not_days=(), entities=(), without=frozenset())
        """
        if given is None or isinstance(given, Filters):
            return given if given is not None else cls()
        if isinstance(given, Mapping):
            fields = [(clean(str(name)).strip(), _as_list(values)) for name, values in given.items()]
            parsed = [
                (name.removesuffix("!"), value, name.endswith("!")) for name, values in fields for value in values
            ]
            empty = [name for name, values in fields if not values and name != "without" and not name.endswith("!")]
        else:
            parsed, empty = [pair for text in _as_list(given) for pair in pairs(text)], []
        # An empty list of values, such as an empty cohort, excludes everything.
        values_by_field: dict[tuple[str, bool], set[str]] = {(NAMES.get(n, field_name(n)), False): set() for n in empty}
        without: set[str] = set()
        days: dict[bool, list[Period]] = {False: [], True: []}
        for name, value, exclude in parsed:
            name = NAMES.get(name.strip().casefold(), field_name(name))
            if name == "without":
                without.add(_flag(value))
            elif name == "date" and (period := _days(value, strict)):
                days[exclude].append(period)
            else:
                values_by_field.setdefault((name, exclude), set()).add(comparable(name, value))
        conditions = tuple(Condition(name, frozenset(v), exclude) for (name, exclude), v in values_by_field.items())
        included, excluded = (
            tuple((since or FIRST, until or LAST) for since, until in days[exclude]) for exclude in (False, True)
        )
        filters = cls(conditions, days=included, not_days=excluded, without=frozenset(without))
        if len(included) == 1:
            since, until = days[False][0]
            filters = replace(filters, since=since, until=until, days=())
        return filters


KNOWN = ("patient", "date", "type", "source", "file", "without", *NAMES)


def field_name(name: str) -> str:
    """Return the name of a metadata field in the form that is compared."""
    name = name.strip().casefold()
    return f"#{name}" if name.startswith("#") else name


def comparable(name: str, value: str) -> str:
    """Return a value of a field in the form that is compared."""
    value = value.strip()
    if name == ASPECT and "*" not in value:
        return aspect_of(value)
    return value if name in EXACT else value.casefold()


def document_facts(document: Document) -> Iterator[tuple[str, str]]:
    """Yield the distinct facts of a document for filters: its metadata, its id, and the day of its date."""
    facts = {(ID, document.id)}
    metadata = plain(dict(document.metadata))
    for name, value in metadata.items():
        for part in value if isinstance(value, list) else [value]:
            if part is not None and not isinstance(part, dict) and str(part).strip():
                facts.add((field_name(name), comparable(field_name(name), str(part))))
    dates = [str(value) for name, value in metadata.items() if name.casefold() == "date"]
    if day := next(filter(None, map(day_of, dates)), ""):
        facts.add((DAY, day))
    yield from sorted(facts)


def passage_facts(aspect: str, mentions: Iterable[Mention]) -> Iterator[tuple[str, str]]:
    """Yield the distinct facts of a passage for filters: its aspect, and each concept with its properties."""
    facts = {(ASPECT, aspect)} if aspect else set()
    for mention in mentions:
        if mention.concept is not None:
            bits = sum(1 << FLAGS.index(flag) for flag in mention.context)
            facts.add((ENTITY, f"{mention.concept.code} {bits}"))
    yield from sorted(facts)


def day_number(day: str) -> int:
    """Return a day as a number; a later day has a larger number."""
    return int(day.replace("-", ""))


def day_of(date: str) -> str:
    """Return the day of an ISO date, the first day of a month or a year; empty if the text is not such a date."""
    match = DATE.match(date)
    return f"{match[1]}-{match[2] or '01'}-{match[3] or '01'}" if match else ""


def _days(value: str, strict: bool) -> tuple[str, str] | None:
    """Return the first and the last day of a date or a range of dates; None if the value is neither."""
    low, dots, high = value.removesuffix("*").partition("..")
    bounds = [part.strip() for part in ((low, high) if dots else (low, low))]
    matches = [DATE.fullmatch(part) if part else None for part in bounds]
    if strict:
        matches = [match if match and _is_in_calendar(match) else None for match in matches]
    if any(part and not match for part, match in zip(bounds, matches, strict=True)) or not any(matches):
        if dots:
            raise CaprError(
                f"{value!r} is not a range of dates. Fix: write 2023-01-31..2023-06-30, 2023.. or ..2023-06."
            )
        return None
    since = day_of(bounds[0]) if matches[0] else ""
    last = matches[1]
    until = f"{last[1]}-{last[2] or '12'}-{last[3] or '31'}" if last else ""
    if strict and since and until and until < since:
        fact = f"{value!r} is not a range of dates: the period ends before it begins"
        raise CaprError(f"{fact}. Fix: write {bounds[1]}..{bounds[0]}.")
    return since, until


def _is_in_calendar(date: re.Match[str]) -> bool:
    """Return whether the month and the day of a date exist; every month may have 31 days, as in `2024-01..2024-02`."""
    return "01" <= (date[2] or "01") <= "12" and "01" <= (date[3] or "01") <= "31"


def clean(text: str) -> str:
    """Return a text without lone surrogates, which no document has."""
    return text.encode("utf-8", "replace").decode()


def pairs(text: str) -> list[tuple[str, str, bool]]:
    """Return name, value and whether it is excluded, for a filter that a user wrote; one triple for each value."""
    name, equals, value = text.partition("=")
    exclude = name.endswith("!")
    name = name.removesuffix("!").strip()
    if not equals or not name or not value.strip():
        raise CaprError(f"the filter {text!r} does not name a field and a value. Fix: {SYNTAX}.")
    return [(name, item, exclude) for item in _from_file(value)]


def _as_list(values: Any) -> list[str]:
    if isinstance(values, str | Path) or not isinstance(values, Iterable):
        return [clean(str(values))]
    return [clean(str(value)) for value in values]


def _from_file(value: str) -> list[str]:
    if not value.startswith("@"):
        return [value]
    try:
        lines = Path(value[1:]).read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeError) as error:
        fact = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise CaprError(f"{value[1:]}: {fact}. Fix: name a text file with one value on each line.") from error
    values = [line.strip() for line in lines if line.strip()]
    if not values:
        raise CaprError(f"{value[1:]}: the file has no values. Fix: write one value on each line.")
    return values


def _flag(value: str) -> str:
    if value not in FLAGS:
        raise CaprError(f"a mention cannot be {value!r}. Fix: use one of {', '.join(FLAGS)}.")
    return value

"""Filters: which passages may be found at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from capr.annotate import Mention
from capr.annotate.aspects import aspect_of
from capr.annotate.context import FLAGS
from capr.documents import CaprError, Document
from capr.index.digest import plain

# What capr itself knows of documents and passages; metadata whose name begins so gets another #.
ASPECT, ENTITY, DAY, ID = "#aspect", "#entity", "#day", "#document"
NAMES = {"aspect": ASPECT, "section": ASPECT, "document": ID, "id": ID}
PASSAGE_NAMES = (ASPECT, ENTITY)  # what differs between the passages of a document
EXACT = ("patient", ID, ENTITY)  # upper and lower case count: P1 and p1 may be two patients
FIRST, LAST = "0000-00-00", "9999-99-99"
Period = tuple[str, str]  # a first and a last day
DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?(?=$|[T ])", re.ASCII)
SYNTAX = "write name=value, name!=value, name=begin*, name=@FILE with a value on each line, or date=2023-01..2023-06"


@dataclass(frozen=True, slots=True)
class Condition:
    """A field that has, or has not, one of some values."""

    name: str
    values: frozenset[str]
    exclude: bool = False


@dataclass(frozen=True, slots=True)
class Filters:
    """All of them have to be passed.

    Attributes:
        conditions: on fields.
        since, until: the first and the last day, `2023-01-31`; empty for any. Who has no date does not pass.
        days: pairs of a first and a last day, one of which has to be passed, if there are any.
        not_days: such pairs, none of which may be passed.
        entities: codes, one of which has to be mentioned in the passage.
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
        """Pairs of a first and a last day, one of which has to be passed; none, if any day passes."""
        low, high = self.since or FIRST, self.until or LAST
        if not self.days:
            return ((low, high),) if self.since or self.until else ()
        return tuple((max(low, since), min(high, until)) for since, until in self.days)

    def __and__(self, other: Filters) -> Filters:
        """What passes both."""
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
        """The same, with the entities that `without` is about."""
        return replace(self, entities=tuple(codes))

    @property
    def entity_values(self) -> frozenset[str]:
        """The facts about entities of which a passage needs one."""
        allowed = [i for i in range(1 << len(FLAGS)) if not any(i >> FLAGS.index(f) & 1 for f in self.without)]
        return frozenset(f"{code} {i}" for code in self.entities for i in allowed)

    @classmethod
    def of(cls, given: Filters | Mapping[str, Any] | Iterable[str] | str | None) -> Filters:
        """Filters from what users write.

        A mapping has values or lists of them (`{"patient": ["p1", "p2"], "date": "2023..", "without": "negated"}`); a !
        after a name (`{"type!": "letter"}`) leaves them out. A text or a list of texts has `name=value`, `name!=value`,
        `name=@FILE` and `date=FROM..TO`. Values of the same name are alternatives, and a * stands for anything. A file
        has one value on each line.

        >>> Filters.of(["type=Discharge summary", "date=2023..2024-02"])
        ... # doctest: +NORMALIZE_WHITESPACE
        Filters(conditions=(Condition(name='type', values=frozenset({'discharge summary'}), exclude=False),),
                since='2023-01-01', until='2024-02-31', days=(), not_days=(), entities=(), without=frozenset())
        """
        if given is None or isinstance(given, Filters):
            return given if given is not None else cls()
        if isinstance(given, Mapping):
            named = [(clean(str(name)).strip(), _listed(values)) for name, values in given.items()]
            asked = [(name.removesuffix("!"), value, name.endswith("!")) for name, values in named for value in values]
            empty = [name for name, values in named if not values and name != "without" and not name.endswith("!")]
        else:
            asked, empty = [pair for text in _listed(given) for pair in pairs(text)], []
        # Nobody is in an empty cohort.
        chosen: dict[tuple[str, bool], set[str]] = {(NAMES.get(n, field_name(n)), False): set() for n in empty}
        without: set[str] = set()
        days: dict[bool, list[Period]] = {False: [], True: []}
        for name, value, exclude in asked:
            name = NAMES.get(name.strip().casefold(), field_name(name))
            if name == "without":
                without.add(_flag(value))
            elif name == "date" and (period := _days(value)):
                days[exclude].append(period)
            else:
                chosen.setdefault((name, exclude), set()).add(compared(name, value))
        conditions = tuple(Condition(name, frozenset(v), exclude) for (name, exclude), v in chosen.items())
        kept, left_out = (tuple((since or FIRST, until or LAST) for since, until in days[out]) for out in (False, True))
        found = cls(conditions, days=kept, not_days=left_out, without=frozenset(without))
        if len(kept) == 1:
            since, until = days[False][0]
            found = replace(found, since=since, until=until, days=())
        return found


KNOWN = ("patient", "date", "type", "source", "file", "without", *NAMES)


def field_name(given: str) -> str:
    """The name of a field of the metadata, in the form in which it is compared."""
    name = given.strip().casefold()
    return f"#{name}" if name.startswith("#") else name


def compared(name: str, value: str) -> str:
    """A value in the form in which it is compared."""
    value = value.strip()
    if name == ASPECT and "*" not in value:
        return aspect_of(value)
    return value if name in EXACT else value.casefold()


def document_facts(document: Document) -> Iterator[tuple[str, str]]:
    """What a document can be filtered by, each once: all metadata, its id, and the day of its date."""
    facts = {(ID, document.id)}
    metadata = plain(dict(document.metadata))
    for name, value in metadata.items():
        for part in value if isinstance(value, list) else [value]:
            if part is not None and not isinstance(part, dict) and str(part).strip():
                facts.add((field_name(name), compared(field_name(name), str(part))))
    dates = [str(value) for name, value in metadata.items() if name.casefold() == "date"]
    if day := next(filter(None, map(day_of, dates)), ""):
        facts.add((DAY, day))
    yield from sorted(facts)


def passage_facts(aspect: str, mentions: Iterable[Mention]) -> Iterator[tuple[str, str]]:
    """What a passage can be filtered by: its aspect, and each concept with its properties."""
    facts = {(ASPECT, aspect)} if aspect else set()
    for mention in mentions:
        if mention.concept is not None:
            bits = sum(1 << FLAGS.index(flag) for flag in mention.context)
            facts.add((ENTITY, f"{mention.concept.code} {bits}"))
    yield from sorted(facts)


def day_number(day: str) -> int:
    """A day as a number that is larger for a later one."""
    return int(day.replace("-", ""))


def day_of(date: str) -> str:
    """The day of an ISO date, the first one where it names only a month or a year; empty if it is none."""
    match = DATE.match(date)
    return f"{match[1]}-{match[2] or '01'}-{match[3] or '01'}" if match else ""


def _days(value: str) -> tuple[str, str] | None:
    """The first and the last day that a value means; None if it is no date and no range of dates."""
    low, dots, high = value.removesuffix("*").partition("..")
    bounds = [part.strip() for part in ((low, high) if dots else (low, low))]
    matches = [DATE.fullmatch(part) if part else None for part in bounds]
    if any(part and not match for part, match in zip(bounds, matches, strict=True)) or not any(matches):
        if dots:
            raise CaprError(f"{value!r} is no range of dates. Fix: write 2023-01-31..2023-06-30, 2023.. or ..2023-06.")
        return None
    since = day_of(bounds[0]) if matches[0] else ""
    last = matches[1]
    return since, f"{last[1]}-{last[2] or '12'}-{last[3] or '31'}" if last else ""


def clean(text: str) -> str:
    """A text without halves of surrogate pairs, which no document has."""
    return text.encode("utf-8", "replace").decode()


def pairs(text: str) -> list[tuple[str, str, bool]]:
    """Name, value and whether it must not be, of a filter as a user writes it; several for a file of values."""
    name, equals, value = text.partition("=")
    exclude = name.endswith("!")
    name = name.removesuffix("!").strip()
    if not equals or not name or not value.strip():
        raise CaprError(f"the filter {text!r} does not name a field and a value. Fix: {SYNTAX}.")
    return [(name, one, exclude) for one in _from_file(value)]


def _listed(values: Any) -> list[str]:
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
    found = [line.strip() for line in lines if line.strip()]
    if not found:
        raise CaprError(f"{value[1:]}: there is no value in it. Fix: write one value on each line.")
    return found


def _flag(value: str) -> str:
    if value not in FLAGS:
        raise CaprError(f"a mention cannot be {value!r}. Fix: use one of {', '.join(FLAGS)}.")
    return value

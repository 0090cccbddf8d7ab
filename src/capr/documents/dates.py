"""Converts the dates of all sources to one form, so that they can be compared."""

from __future__ import annotations

import re
from datetime import date, datetime

from capr.documents.problem import Notice
from capr.documents.quantity import quantity

HL7_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d)?)?(?:\.\d+)?([+-]\d{4})?$")
PLAIN_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(?::\d\d)?)(?:\.0+)?$")
DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?(?:[T ].*)?", re.ASCII)


def iso_date(value: str) -> str:
    """Return a date in ISO 8601 if its form is unambiguous, and any other value unchanged.

    A time of midnight becomes a date alone, because MIMIC gives midnight for notes of unknown time.

    >>> iso_date("20260314093000"), iso_date("2151-07-16 00:00:00"), iso_date("3/4/26")
    ('2026-03-14T09:30:00', '2151-07-16', '3/4/26')
    """
    value = value.strip()
    if match := HL7_TIME.fullmatch(value):
        year, month, day, hour, minute, second, zone = match.groups()
        iso = f"{year}-{month}-{day}"
        if hour:
            iso += f"T{hour}:{minute}:{second or '00'}" + (f"{zone[:3]}:{zone[3:]}" if zone else "")
    elif match := PLAIN_TIME.fullmatch(value):
        day, time = match.groups()
        iso = day if time in ("00:00", "00:00:00") else f"{day}T{time}"
    else:
        return value
    try:
        datetime.fromisoformat(iso)
    except ValueError:
        return value
    return iso


def is_date(value: str) -> bool:
    """Return whether filters on dates understand a value: a year, a month or a day that exists, perhaps with a time.

    >>> [is_date(value) for value in ("2024", "2024-03", "2024-03-18T09:30:00", "18.03.2024", "2024-02-30")]
    [True, True, True, False, False]
    """
    match = DATE.fullmatch(value)
    try:
        return match is not None and bool(date(int(match[1]), int(match[2] or 1), int(match[3] or 1)))
    except ValueError:
        return False


class OtherDates:
    """The dates of one file that filters on dates do not understand. capr keeps them, and one notice names them."""

    def __init__(self) -> None:
        self._first = ""
        self._line: int | None = None
        self._count = 0

    def add(self, value: object, line: int | None) -> None:
        """Count the date of the document in a line, unless filters understand it or there is none."""
        text = "" if value is None else str(value).strip()
        if not text or is_date(text):
            return
        if not self._count:
            self._first, self._line = text, line
        self._count += 1

    def notice(self) -> Notice | None:
        """Return the notice with the first of these dates and their number; None if there is none."""
        if not self._count:
            return None
        others = f" and {quantity(self._count - 1, 'other')} in the file" if self._count > 1 else ""
        fact = f"capr does not understand the date {self._first!r}{others}"
        return Notice(fact, "write dates as 2024-03-18, so that filters find them", line=self._line)

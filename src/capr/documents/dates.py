"""Dates of the sources in one form, so that they can be compared."""

from __future__ import annotations

import re
from datetime import datetime

HL7_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d)?)?(?:\.\d+)?([+-]\d{4})?$")
PLAIN_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(?::\d\d)?)(?:\.0+)?$")


def iso_date(value: str) -> str:
    """ISO 8601 for the forms that leave no doubt; anything else as it stands.

    A time of midnight is a date: that is how MIMIC writes notes whose time is unknown.

    >>> iso_date("20260314093000"), iso_date("2151-07-16 00:00:00"), iso_date("3/4/26")
    ('2026-03-14T09:30:00', '2151-07-16', '3/4/26')
    """
    value = value.strip()
    if match := HL7_TIME.fullmatch(value):
        year, month, day, hour, minute, second, zone = match.groups()
        written = f"{year}-{month}-{day}"
        if hour:
            written += f"T{hour}:{minute}:{second or '00'}" + (f"{zone[:3]}:{zone[3:]}" if zone else "")
    elif match := PLAIN_TIME.fullmatch(value):
        day, time = match.groups()
        written = day if time in ("00:00", "00:00:00") else f"{day}T{time}"
    else:
        return value
    try:
        datetime.fromisoformat(written)
    except ValueError:
        return value
    return written

"""Similar names: columns that probably hold one of capr's fields, though they have another name."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from difflib import get_close_matches

from capr.documents.problem import Notice
from capr.documents.records import USUAL_NAMES

# The other names that users give a column, in lower case and without spaces, hyphens and underscores.
OTHER_NAMES = {
    "file": ("filename", "filepath", "path", "textfile", "notefile", "datei", "dateiname", "document", "name"),
    "patient": ("patientid", "patientno", "patientnr", "patientnumber", "patid", "patnr", "pid", "pat"),
    "date": ("datum", "visitdate", "reportdate", "documentdate", "datetime", "day"),
}
CUTOFF = 0.85  # similarity of a misspelled name: `pateint` and `dates` pass, `data` and `update` do not


def near_name(field: str, names: Collection[str]) -> str:
    """Return the column that probably holds a field of capr; empty if there is none.

    >>> near_name("patient", ["file", "Patient-ID"]), near_name("date", ["file", "Datum"]), near_name("date", ["data"])
    ('Patient-ID', 'Datum', '')
    """
    name_by_key = {_key(name): name for name in reversed(list(names))}
    for other in (field, *OTHER_NAMES[field], *map(_key, USUAL_NAMES.get(field, ()))):
        if other in name_by_key:
            return name_by_key[other]
    misspelled = get_close_matches(field, [key for key in name_by_key if key[:1] == field[0]], 1, CUTOFF)
    return name_by_key[misspelled[0]] if misspelled else ""


def near_name_notices(fields: Collection[str], names: Collection[str], may_map: bool) -> Iterator[Notice]:
    """Yield a notice for the patient and the date, if the table lacks that column and has one with a similar name.

    Args:
        fields: the fields of capr that the table has.
        names: the names of all its columns.
        may_map: whether the option `--column` applies to the table.
    """
    for field in ("patient", "date"):
        if field not in fields and (near := near_name(field, names)):
            option = f", or use --column {field}={shlex.quote(near)}" if may_map else ""
            fact = f"there is no column {field!r}, and {near!r} may be meant"
            yield Notice(fact, f"if so, rename it to {field}{option}", line=1)


def _key(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())

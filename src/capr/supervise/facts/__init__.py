"""Facts: what a note says of drugs, problems, tests, dates and the patient, in ways that can be trusted.

Each finder is a few patterns over the mentions, sentences and sections of a note. Precision comes first: what is not
surely meant is not found.
"""

from __future__ import annotations

from capr.supervise.facts.dates import dates, durations
from capr.supervise.facts.drugs import drugs, treatments, undosed
from capr.supervise.facts.fields import allergies, fields, person
from capr.supervise.facts.measurements import mentioned, shown, values
from capr.supervise.facts.note import Fact, Note
from capr.supervise.facts.problems import absent, causes, family

__all__ = ["Fact", "Note", "facts", "mentioned", "undosed"]

FINDERS = (drugs, treatments, values, shown, dates, durations, absent, family, causes, fields, allergies, person)


def facts(note: Note) -> list[Fact]:
    """Everything that the finders find, each fact once."""
    return list(dict.fromkeys(fact for finder in FINDERS for fact in finder(note)))

"""Facts: what a note reliably says about drugs, problems, tests, dates and the patient.

Each finder is a few patterns over the mentions, sentences and sections of a note. Precision comes first: a finder
ignores every wording that it is not sure to understand.
"""

from __future__ import annotations

from capr.supervise.facts.dates import find_dates, find_durations
from capr.supervise.facts.drugs import find_drugs, find_drugs_without_dose, find_treatments
from capr.supervise.facts.fields import find_allergies, find_fields, find_personal_details
from capr.supervise.facts.measurements import find_examination_results, find_values, mention_patterns
from capr.supervise.facts.note import Fact, Note
from capr.supervise.facts.problems import find_absent_problems, find_causes, find_family_history

__all__ = ["Fact", "Note", "find_drugs_without_dose", "find_facts", "mention_patterns"]

FINDERS = (
    find_drugs,
    find_treatments,
    find_values,
    find_examination_results,
    find_dates,
    find_durations,
    find_absent_problems,
    find_family_history,
    find_causes,
    find_fields,
    find_allergies,
    find_personal_details,
)


def find_facts(note: Note) -> list[Fact]:
    """Return all facts, each once."""
    return list(dict.fromkeys(fact for finder in FINDERS for fact in finder(note)))

"""The contents of a library: its documents, passages, patients and aspects, and the entities that it mentions."""

from __future__ import annotations

from collections.abc import Sequence

from capr.annotate.completion import Suggestion
from capr.documents import Document, NotFoundError
from capr.index import FilteredIndex, Index, Patient, StoredPassage
from capr.index.filters import ASPECT, clean
from capr.search.resources import GivenFilters, Resources

LIKELY = 200  # completions to check, if only the entities of a part of a library count
MOST_ASPECTS = 100_000  # aspects to compare; there may be as many as headings


def document(index: Index, id: str) -> Document:
    """Return a document, or raise `NotFoundError`."""
    stored = index.document(clean(id))
    if stored is None:
        raise NotFoundError(f"the library has no document {id!r}. Fix: check the id; capr export lists all.")
    return stored


def passages(index: Index, id: str) -> Sequence[StoredPassage]:
    """Return all passages of a document, or raise `NotFoundError`."""
    return index.passages_in(document(index, id).id)


def passage(index: Index, id: str, position: int) -> StoredPassage:
    """Return a passage of a document by its index, or raise `NotFoundError`."""
    stored = passages(index, id)
    if not 0 <= position < len(stored):
        count = f"it has {len(stored):,}, counted from 0"
        raise NotFoundError(f"the document {id!r} has no passage {position}. Fix: use an index that exists; {count}.")
    return stored[position]


def patients(resources: Resources, prefix: str, filters: GivenFilters) -> list[Patient]:
    """Return the patients whose name begins with the prefix."""
    folded = clean(prefix).strip().casefold()
    all_patients = resources.index.patients(resources.document_filters(filters))
    return [patient for patient in all_patients if patient.patient.casefold().startswith(folded)]


def aspects(index: Index, prefix: str, k: int) -> list[tuple[str, int]]:
    """Return the aspects in which a word begins with the prefix, those whose first word does first."""
    folded = clean(prefix).strip().casefold()
    counts = index.values(ASPECT, MOST_ASPECTS)
    matches = [(aspect, count) for aspect, count in counts if f" {folded}" in f" {aspect}"]
    return sorted(matches, key=lambda match: not match[0].startswith(folded))[: max(0, k)]


def suggest(resources: Resources, prefix: str, k: int) -> list[Suggestion]:
    """Return entities whose name begins with the prefix; in a part of a library, only those that it mentions."""
    if not isinstance(resources.index, FilteredIndex):
        return resources.vocabulary.suggest(prefix, k)
    mentioned = resources.index.mentioned_codes()
    completions = resources.vocabulary.suggest(prefix, LIKELY)
    return [completion for completion in completions if completion.concept.code in mentioned][:k]

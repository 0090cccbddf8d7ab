"""The test split, a fixed share of the documents, and the validation split of a training: both chosen by ids alone."""

from __future__ import annotations

import hashlib
from collections.abc import Collection

TEST = 0.2


def is_test(id: str, share: float = TEST) -> bool:
    """Tell whether a document belongs to the test split, which `capr train --part train` leaves out.

    >>> [id for id in ("Gout", "Asthma", "Stroke", "Hives", "Rabies") if is_test(id)]
    ['Stroke']
    """
    return _hash_fraction(id) < share


def held_out_ids(ids: Collection[str], usable: Collection[str], share: float, seed: int) -> set[str]:
    """Return the ids of the documents to hold out for validation: about a share of them.

    A hash of its id decides about a document. In a small collection, this may hold out no usable document; then the
    usable documents whose hashes are the lowest are held out as well, at least one.

    Args:
        ids: the ids of all documents.
        usable: the ids of the documents that give something to validate with.
        share: the share of the documents; 0 for none.
        seed: the seed of the choice.

    >>> held_out_ids(["Gout", "Asthma", "Stroke"], ["Gout", "Asthma"], 0.01, 1)
    {'Asthma'}
    """
    fractions = {id: _hash_fraction(f"{seed} {id}") for id in ids}
    held_out = {id for id, fraction in fractions.items() if fraction < share}
    if share and len(usable) > 1 and held_out.isdisjoint(usable):
        lowest = sorted(usable, key=lambda id: (fractions[id], id))
        held_out.update(lowest[: max(1, round(share * len(lowest)))])
    return held_out


def _hash_fraction(name: str) -> float:
    """Map a name to a number from 0 to 1 that depends on the name alone."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:6]) / 256**6

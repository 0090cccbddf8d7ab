"""The names of the vector spaces on disk."""

from __future__ import annotations

from typing import NamedTuple

from capr.index.spaces import SPACES, Space

WORDS = "words"  # the folder of the word index


class SpaceNames(NamedTuple):
    """The names of a space on disk.

    Attributes:
        table: the table of its vectors.
        model: the key of its model in the table `meta`.
        exchanged: the key in `meta` of the number of times that existing vectors became invalid.
        folder: the folder of its vector index.
    """

    table: str
    model: str
    exchanged: str
    folder: str


# Format 1 fixed these two names; all other spaces follow the rule in `names_of`.
FIRST = {
    "passages": SpaceNames("vector", "encoder", "exchanged", "vectors"),
    "sentences": SpaceNames("sentence", "discourse", "exchanged sentences", "sentences"),
}


def names_of(space: Space) -> SpaceNames:
    """Return the names of a space on disk."""
    name = space.name
    return FIRST.get(name) or SpaceNames(f"vector_{name}", f"model {name}", f"exchanged {name}", f"vectors-{name}")


def derived() -> list[str]:
    """Return the folders of all derived indexes."""
    return [WORDS, *(names_of(space).folder for space in SPACES.values() if not space.is_packed)]

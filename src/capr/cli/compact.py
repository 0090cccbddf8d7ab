"""`capr compact`: free the room of what was removed."""

from __future__ import annotations

from capr.cli import inputs
from capr.search import Library


def command(library: inputs.LibraryFolder) -> None:
    """Free the room that removed and replaced documents still take.

    Example: capr compact library
    """
    with Library(library) as kept:
        freed = kept.compact()
    inputs.terminal().print(f"{max(0, freed) / 1e6:,.1f} MB freed in {library}")

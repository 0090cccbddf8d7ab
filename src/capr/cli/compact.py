"""`capr compact`: free the space of removed documents."""

from __future__ import annotations

from capr.cli import inputs
from capr.search import Library


def command(library: inputs.LibraryLocation) -> None:
    """Free the space that removed and replaced documents still take.

    Example: capr compact library
    """
    with Library(library) as opened:
        bytes_freed = opened.compact()
    inputs.terminal().print(f"{max(0, bytes_freed) / 1e6:,.1f} MB freed in {library}")

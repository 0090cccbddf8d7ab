"""The registry of engines, by the scheme of a library's location. To add an engine, add a line to `ENGINES`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from capr import registry
from capr.documents import CaprError
from capr.index.protocol import Index

FOLDER = "folder"  # the scheme of a location without one
# module:function; the function takes the location and whether to create the library, and returns an `Index`.
ENGINES = {FOLDER: "capr.index.embedded.engine:open_folder"}
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def scheme_of(location: str | os.PathLike[str]) -> str:
    """Return the scheme of a location; a path has the scheme `folder`.

    >>> scheme_of("notes"), scheme_of("opensearch://host/notes")
    ('folder', 'opensearch')
    """
    match = SCHEME.match(location) if isinstance(location, str) else None
    return match[1].lower() if match else FOLDER


def is_library(location: str | os.PathLike[str]) -> bool:
    """Whether a location names a library: a folder that holds one, or the address of an engine."""
    from capr.index.embedded.database import FILE

    scheme = scheme_of(location)
    return scheme in ENGINES and (scheme != FOLDER or (Path(_address(location)) / FILE).is_file())


def not_a_library(folder: Path) -> CaprError:
    """Return the error about a folder without a library, with the fix for what is there."""
    from capr.index.embedded.database import FILE, has_other_files

    if not folder.exists():
        return CaprError(f"there is no library {folder}. Fix: create it with capr index {folder} FILE...")
    fact = f"it has no {FILE}" if folder.is_dir() else "it is a file"
    empty = folder.is_dir() and not has_other_files(folder)
    fix = f"capr index {folder} FILE..." if empty else f"name a library, or make a new one: capr index NEW {folder}"
    return CaprError(f"{folder} is not a library: {fact}. Fix: {fix}.")


def open_index(location: str | os.PathLike[str], create: bool = False) -> Index:
    """Open the index at a location: the path of a folder, or `scheme://...` for the engine of that scheme.

    Args:
        location: where the index is.
        create: create it if it does not exist.

    Raises:
        CaprError: no engine has that scheme, or the engine cannot open the index.
    """
    address = checked_location(location)
    open_engine: Callable[[str, bool], Index] = registry.load(ENGINES[scheme_of(location)])
    return open_engine(address, create)


def checked_location(location: str | os.PathLike[str]) -> str:
    """Return a location as its engine takes it: the path of a folder without the scheme, or the whole address.

    Raises:
        CaprError: no engine has the scheme of the location.
    """
    scheme = scheme_of(location)
    if scheme not in ENGINES:
        known = [f"{name}://" for name in ENGINES if name != FOLDER]
        fix = f"name a folder{', or use ' if known else ''}{', '.join(known)}"
        raise CaprError(f"{location}: there is no engine for {scheme}://. Fix: {fix}.")
    return str(Path(_address(location))) if scheme == FOLDER else _address(location)


def _address(location: str | os.PathLike[str]) -> str:
    """Return the argument for the engine: the path of a folder, or the whole location."""
    if scheme_of(location) == FOLDER and isinstance(location, str):
        return SCHEME.sub("", location, count=1)
    return os.fspath(location)

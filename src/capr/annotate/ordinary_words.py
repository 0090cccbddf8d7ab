"""Names that are ordinary words in clinical text: `lead`, `he`, `all`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from capr.text.names import key


@cache
def ordinary() -> frozenset[str]:
    """Return the names of ordinary.txt, which mean no entity in clinical text."""
    lines = files("capr.annotate").joinpath("ordinary.txt").read_text("utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


@cache
def _ordinary_keys() -> frozenset[str]:
    return frozenset(key(name).lower() for name in ordinary())


def is_ordinary(name: str) -> bool:
    """Whether a name means no entity.

    >>> is_ordinary("Lead"), is_ordinary("leads"), is_ordinary("lead poisoning")
    (True, True, False)
    """
    return key(name).lower() in _ordinary_keys()

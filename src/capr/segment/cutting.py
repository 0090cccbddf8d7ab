"""The settings by which a library cuts documents into passages."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from capr.documents.problem import CaprError

MAX_WORDS = 250


@dataclass(frozen=True, slots=True)
class Cutting:
    """The settings by which a document is cut into passages. A library stores them.

    Attributes:
        max_words: the maximum length of a passage, in words separated by white space.

    Example:
        >>> Cutting().as_json(), Cutting(max_words=100).as_json()
        ({}, {'max_words': 100})
    """

    max_words: int = MAX_WORDS

    def __post_init__(self) -> None:
        if type(self.max_words) is not int or self.max_words < 1:
            fact = f"a passage of at most {self.max_words!r} words cannot hold anything"
            raise CaprError(f"{fact}. Fix: give it a whole number of words, at least 1.")

    def as_json(self) -> dict[str, Any]:
        """Return the settings that differ from the defaults, so that `Cutting(**record)` restores them."""
        defaults = asdict(Cutting())
        return {name: value for name, value in asdict(self).items() if value != defaults[name]}

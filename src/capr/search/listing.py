"""The base of all results: items in order, with notices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Generic, Protocol, TypeVar


class ListingItem(Protocol):
    """An item of a listing, such as a hit or an answer."""

    def as_json(self) -> dict[str, Any]:
        """Return a plain dictionary."""


Item = TypeVar("Item", bound=ListingItem, covariant=True)


class Listing(Generic[Item]):
    """The results of an operation. The command line and the server print and send any listing.

    A new kind of results is a frozen dataclass with slots. It has its items in a tuple, and `notices`. Its length,
    iteration and indexing are those of the items.

    Attributes:
        name: the name of the field with the items, in Python and in JSON.
        notices: notices for the user, such as what was left out and why.

    Example:
        >>> from dataclasses import dataclass
        >>> from capr.annotate import Concept
        >>> @dataclass(frozen=True, slots=True)
        ... class Concepts(Listing[Concept]):
        ...     name = "concepts"
        ...     concepts: tuple[Concept, ...]
        ...     notices: tuple[str, ...] = ()
        >>> Concepts((), ("the library mentions none",)).as_json()
        {'notices': ['the library mentions none'], 'concepts': []}
    """

    __slots__ = ()
    name: ClassVar[str]
    notices: tuple[str, ...]

    @property
    def items(self) -> tuple[Item, ...]:
        """The items, whatever the name of their field."""
        items: tuple[Item, ...] = getattr(self, self.name)
        return items

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Item:
        return self.items[index]

    def about(self) -> dict[str, Any]:
        """Return facts about the results as a whole, without the notices, as plain values."""
        return {}

    def as_json(self) -> dict[str, Any]:
        """Return a plain dictionary, with the items under their name."""
        return {
            **self.about(),
            "notices": list(self.notices),
            self.name: [item.as_json() for item in self.items],
        }

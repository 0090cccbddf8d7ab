"""The vector spaces that an index can have, by name.

To add one, add a line to `SPACES` and a model that fills it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Space:
    """Vectors that can be compared with each other, because one model made all of them.

    Attributes:
        name: the name of the space in the index; lower-case letters, digits and underscores.
        model: the name of its model in options and in folders of built-in weights.
        missing: the message about passages without vectors, with `{}` for them (`2 passages`) and for the library.
        aggregation: the function that combines the scores of a passage's parts: `mean` or `maxsim`. Empty if a passage
            has one vector and no parts.
    """

    name: str
    model: str
    missing: str
    aggregation: Literal["", "mean", "maxsim"] = ""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"a space cannot be called {self.name!r}; use lower-case letters, digits and underscores")

    @property
    def is_packed(self) -> bool:
        """Whether each passage has a code that only its model can compare with a query.

        An engine stores and returns these codes; it does not search them.
        """
        return self.aggregation == "maxsim"


PASSAGES = Space("passages", "encoder", "there is no vector for {} yet. Fix: capr encode {}.")
SENTENCES = Space("sentences", "discourse", "the sentences of {} have no vectors yet. Fix: capr encode {}.", "mean")
PIECES = Space("pieces", "encoder", "the word pieces of {} have no vectors yet. Fix: capr encode {}.", "maxsim")
SPACES = {space.name: space for space in (PASSAGES, SENTENCES, PIECES)}

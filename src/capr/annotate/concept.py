"""Concepts: the entries of the vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Concept:
    """An entity with all its names and codes.

    Attributes:
        code: the code, with its system: `MESH:D009203`.
        kind: `disease`, `symptom`, `drug` or a kind of a user's table.
        name: the preferred name.
        synonyms: the other names.
        codes: the codes of other systems, such as `ICD10CM:I21`.
    """

    code: str
    kind: str
    name: str
    synonyms: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()

    @property
    def system(self) -> str:
        """Return the system of the code; empty if the code has none."""
        return self.code.partition(":")[0] if ":" in self.code else ""

    @property
    def names(self) -> tuple[str, ...]:
        """Return all names, the preferred name first."""
        return (self.name, *self.synonyms)

    def as_json(self) -> dict[str, Any]:
        """Return the system, code and preferred name."""
        return {"system": self.system, "code": self.code, "name": self.name}

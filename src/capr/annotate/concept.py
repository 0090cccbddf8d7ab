"""A concept: one thing under all its names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Concept:
    """One thing under all its names.

    Attributes:
        code: with the system that it comes from, such as `MESH:D009203`.
        kind: `disease`, `symptom` or `drug`, or what a user's table says.
        name: the preferred one.
        synonyms: all others.
        codes: the same thing in other systems, such as `ICD10CM:I21`.
    """

    code: str
    kind: str
    name: str
    synonyms: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()

    @property
    def system(self) -> str:
        """The system of the code; empty if it names none."""
        return self.code.partition(":")[0] if ":" in self.code else ""

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, the preferred one first."""
        return (self.name, *self.synonyms)

    def as_json(self) -> dict[str, Any]:
        """System, code and preferred name."""
        return {"system": self.system, "code": self.code, "name": self.name}

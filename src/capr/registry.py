"""Registries that refer to an object as `module:name`, so that importing a registry imports none of its entries."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load(reference: str) -> Any:
    """Import and return an object that a registry refers to.

    Args:
        reference: the object as `module:name`, for example `fractions:Fraction`.

    Example:
        >>> load("fractions:Fraction")(1, 2)
        Fraction(1, 2)
    """
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)

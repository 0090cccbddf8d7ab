"""Old public names, which keep working for one release with a DeprecationWarning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Value = TypeVar("Value")


def warn(old: str, new: str, stacklevel: int = 3) -> None:
    """Warn the caller's caller that `old` is now called `new`."""
    warnings.warn(f"{old} is deprecated; use {new}", DeprecationWarning, stacklevel=stacklevel)


def renamed_arguments(**renamed: str) -> Callable[[Callable[Parameters, Value]], Callable[Parameters, Value]]:
    """Accept old keyword arguments: `@renamed_arguments(limit="k")` passes `limit=3` on as `k=3`."""

    def decorate(function: Callable[Parameters, Value]) -> Callable[Parameters, Value]:
        name = function.__qualname__.removesuffix(".__init__")

        @wraps(function)
        def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Value:
            for old, new in renamed.items():
                if old in kwargs:
                    if new in kwargs:
                        raise TypeError(f"{name}() got both {new!r} and its old name {old!r}")
                    warn(f"the argument {old} of {name}()", new)
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate


def renamed_property(old: str, new: str) -> property:
    """Return a property for the old name of an attribute."""

    def get(self: object) -> Any:
        warn(f"{type(self).__name__}.{old}", f"{type(self).__name__}.{new}")
        return getattr(self, new)

    return property(get, doc=f"The old name of `{new}`.")


def renamed_attributes(module: str, renamed: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module's `__getattr__` that finds its attributes by their old names.

    Args:
        module: the module's `__name__`.
        renamed: the new name for each old one.
    """

    def getattr_(name: str) -> Any:
        if name not in renamed:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn(f"{module}.{name}", f"{module}.{renamed[name]}")
        return getattr(sys.modules[module], renamed[name])

    return getattr_

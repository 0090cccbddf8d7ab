"""Turn the fields of dataclasses into options, so that several commands share them.

A dataclass of the command line annotates its fields for typer (`expand_options`, `parameters`). The settings of
families and protocols do not depend on typer: `capr.models.family.option` describes their options in the metadata of
the fields (`field_parameters`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from types import UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from capr.documents import CaprError

Metadata = Mapping[str, Any]  # the metadata of a field


def expand_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each dataclass in the parameters of a command by one option for each of its fields.

    Typer reads the options from the signature. Without this decorator, every command would repeat the shared options.
    """
    hints = get_type_hints(command, include_extras=True)
    dataclasses: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    expanded: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        if name in dataclasses:
            expanded += parameters(dataclasses[name])
        else:
            expanded.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]))

    @wraps(command)
    def run(**arguments: Any) -> None:
        for name, kind in dataclasses.items():
            arguments[name] = kind(**{field.name: arguments.pop(field.name) for field in fields(kind)})
        command(**arguments)

    run.__signature__ = Signature(expanded)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in expanded}
    return run


def parameters(kind: Any) -> list[Parameter]:
    """Return the fields of a dataclass with typer's annotations as the parameters of a command."""
    hints = get_type_hints(kind, include_extras=True)
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(kind)
    ]


def field_parameters(kind: Any, defaults: Any = None, offered: Mapping[str, Metadata] | None = None) -> list[Parameter]:
    """Return the fields of a dataclass that are made by `option` as the parameters of a command.

    Args:
        kind: the dataclass.
        defaults: an instance with the defaults; None for the defaults of the dataclass.
        offered: the fields that become options, with metadata that overrides that of the field; None for all fields.
    """
    hints = get_type_hints(kind)
    options = []
    for field in fields(kind):
        if "help" not in field.metadata or (offered is not None and field.name not in offered):
            continue
        metadata = {**field.metadata, **(offered or {}).get(field.name, {})}
        default = getattr(defaults, field.name) if defaults is not None else field.default
        if metadata.get("shown", MISSING) is not MISSING:
            default = metadata["shown"]
        shown_default: Any = Parameter.empty if default is MISSING else default
        if isinstance(shown_default, tuple):
            shown_default = None
        annotation: Any = Annotated[_type(hints[field.name], metadata, default), _option(field.name, metadata)]
        options.append(Parameter(field.name, Parameter.KEYWORD_ONLY, default=shown_default, annotation=annotation))
    return options


def parse_settings(kind: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a user gave for the fields of a dataclass, parsed and checked.

    The result has no defaults: the dataclass supplies them.

    Raises:
        CaprError: a value is not one of the choices of the field.
    """
    settings = {}
    for field in fields(kind):
        value = values.get(field.name)
        if value is None:
            continue
        metadata: Metadata = field.metadata
        name = _name(field.name, metadata)
        if metadata.get("parse"):
            value = metadata["parse"](name, value)
        elif isinstance(value, list):
            value = tuple(value)
        if metadata.get("choices"):
            check_choice(name, str(value), metadata["choices"])
        settings[field.name] = value
    return settings


def check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise CaprError unless the value of an option is one of the choices."""
    if value not in choices:
        fix = f"use {' or '.join(choice for choice in choices if choice)}"
        raise CaprError(f"{option} does not accept {value!r}. Fix: {fix}.")


def _name(field: str, metadata: Metadata) -> str:
    return metadata.get("name") or f"--{field.replace('_', '-')}"


def _option(field: str, metadata: Metadata) -> Any:
    minimum, maximum = metadata.get("least"), metadata.get("most")
    metavar = metadata.get("metavar") or "|".join(metadata.get("choices") or ()) or None
    return typer.Option(
        _name(field, metadata), help=metadata["help"] or None, min=minimum, max=maximum, metavar=metavar
    )


def _type(hint: Any, metadata: Metadata, default: Any) -> Any:
    """Return the type of the option for typer: a list of texts, the input of a parser, or the type of the field."""
    if metadata.get("parse"):
        return type(default)
    if get_origin(hint) is tuple:
        return list[str] | None
    kinds = [kind for kind in get_args(hint) if kind is not type(None)] if isinstance(hint, UnionType) else [hint]
    return kinds[0] | None if default is None else kinds[0]

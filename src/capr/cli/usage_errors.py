"""Usage errors in plain words, each with its fix: the messages of typer have none, and those of pydantic name types."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from shlex import quote
from typing import Any

import typer

from capr.cli.command_list import WholeDescriptions
from capr.cli.old_options import with_new_names
from capr.index.filters import KNOWN

# The class of all usage errors, from typer or from click: typer has its own copy of click since 0.26.
UsageError: Any = typer.BadParameter.__base__
ARGUMENTS = "capr.arguments"  # the key of the arguments of the command line in the metadata of a context
MOST_NAMES = 12  # commands of a group to list in a message
EXAMPLE = re.compile(r"^Example: (.+?)(?:\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
NO_COMMAND = re.compile(r"No such command '(.*?)'\.")


class PlainErrors(WholeDescriptions):
    """The commands of capr, which report every usage error with the fact and the fix."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options before the name of the command."""
        args = with_new_names(args)
        ctx.meta[ARGUMENTS] = tuple(args)
        with _plain_errors():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that the arguments name."""
        with _plain_errors():
            return super().invoke(ctx)


@contextmanager
def _plain_errors() -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        list_errors = getattr(error.__cause__, "errors", None)  # pydantic's error, in the versions that use it
        if callable(list_errors):
            error.message = " ".join(plain_message(details) for details in list_errors())
        elif type(error).__name__ == "BadOptionUsage":  # it has no context
            fix = "write the option alone" if "not take a value" in error.message else "write its value after it"
            error.message = f"{error.message.rstrip('.')}. Fix: {fix}."
        elif type(error).__name__ != "NoArgsIsHelpError":  # that one prints the help
            _add_fix(error, error.ctx)
        raise


def _add_fix(error: Any, ctx: Any) -> None:
    """Add the fix to the message of a usage error in a context, unless it has one."""
    match type(error).__name__:
        case "MissingParameter":
            error.message = f"Fix: {_addition(ctx)}."
        case "NoSuchOption":
            error.message = f"No such option: {error.option_name}. Fix: {_nearest_option(error, ctx)}."
            error.possibilities = None
        case _ if name := NO_COMMAND.match(error.message):
            error.message = f"{name[0]} Fix: {_nearest_command(name[1], ctx)}."
        case _ if "Fix:" not in error.format_message():
            error.message = f"{error.message.rstrip('.')}. Fix: {_listing(ctx, 'arguments')}."


def _addition(ctx: Any) -> str:
    """Return the fix for a missing argument or option: the example of the command, or its help."""
    example = EXAMPLE.search(ctx.command.help or "")
    return f"add it, as in `{' '.join(example[1].split())}`" if example else f"add it; {_listing(ctx, 'options')}"


def _nearest_option(error: Any, ctx: Any) -> str:
    """Return the fix for an unknown option: the filter that it means, the most similar option, or the help."""
    options = [option for parameter in ctx.command.params for option in parameter.opts if option.startswith("--")]
    option, _, value = error.option_name.partition("=")
    nearest = get_close_matches(option, [*options, *(f"--{name}" for name in KNOWN)], 1)
    name = nearest[0].removeprefix("--") if nearest else ""
    if name in KNOWN and f"--{name}" not in options and "--filter" in options:
        return f"write `--filter {quote(f'{name}={value or _value_after(option, ctx)}')}`"
    nearest = get_close_matches(option, options, 1)
    return f"{f'use {nearest[0]}' if nearest else 'leave it out'}; {_listing(ctx, 'options')}"


def _value_after(option: str, ctx: Any) -> str:
    """Return the value that follows an option on the command line, or a placeholder."""
    arguments = ctx.meta.get(ARGUMENTS, ())
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if argument.startswith(f"{option}="):
            return str(argument.partition("=")[2])
        if argument == option and following and not following.startswith("-"):
            return str(following)
    return "VALUE"


def _nearest_command(name: str, ctx: Any) -> str:
    """Return the fix for an unknown command: the most similar ones, or the commands of a small group."""
    names = ctx.command.list_commands(ctx)
    if nearest := get_close_matches(name, names, 3):
        return f"use {' or '.join(nearest)}; {_listing(ctx, 'commands')}"
    return f"use one of {', '.join(names)}" if len(names) <= MOST_NAMES else _listing(ctx, "commands")


def _listing(ctx: Any, items: str) -> str:
    return f"`{ctx.command_path} --help` lists the {items}"


def plain_message(details: dict[str, Any]) -> str:
    """Return the fact and the fix for an error of pydantic.

    >>> plain_message({"type": "int_parsing", "input": "abc", "msg": "Input should be a valid integer, unable ..."})
    "'abc' is not a whole number. Fix: write digits alone, such as 10."
    >>> plain_message({"type": "greater_than_equal", "input": "0", "ctx": {"ge": 1}, "msg": "Input should be ..."})
    "'0' is too small. Fix: write 1 or more."
    """
    value, limits = repr(str(details["input"])), details.get("ctx", {})
    match details["type"]:
        case "int_parsing" | "int_from_float" | "int_type" | "int_parsing_size":
            return f"{value} is not a whole number. Fix: write digits alone, such as 10."
        case "float_parsing" | "float_type" | "finite_number":
            return f"{value} is not a number. Fix: write one, such as 10 or 0.5."
        case "greater_than_equal":
            return f"{value} is too small. Fix: write {limits['ge']:,} or more."
        case "less_than_equal":
            return f"{value} is too large. Fix: write {limits['le']:,} or less."
        case "value_error":
            return _choices(str(details["msg"]).removeprefix("Value error, ").rstrip("."))
    return str(details["msg"])


def _choices(message: str) -> str:
    """Return the message about a value that is none of the choices, with the fix."""
    fact, _, choices = message.partition(" is not one of ")
    return f"there is no {fact}. Fix: use {choices.replace(chr(39), '')}." if choices else f"{message}."

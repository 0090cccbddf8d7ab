"""The command line: one file per command, one line in `COMMANDS` for each."""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from typing import Annotated

import typer
from typer.core import TyperGroup

from capr.cli.command_list import WholeDescriptions
from capr.cli.evaluate import command as evaluate_command
from capr.cli.train import Families
from capr.cli.usage_errors import PlainErrors
from capr.documents import CaprError, ReadError
from capr.evaluate.protocols import PROTOCOLS, protocol
from capr.version import __version__

COMMANDS = {  # `module:function`, by the words of the command, in the order of the help
    "read": "read:command",
    "segment": "segment:command",
    "headings": "headings:command",
    "annotate": "annotate:command",
    "suggest": "suggest:command",
    "supervise": "supervise:command",
    "questions": "questions:command",
    "index": "index:command",
    "search": "search:command",
    "ask": "ask:command",
    "scores": "scores:command",
    "serve": "serve:command",
    "audit": "audit:command",
    "remove": "remove:command",
    "encode": "encode:command",
    "stats": "stats:command",
    "verify": "verify:command",
    "compact": "compact:command",
    "export": "export:command",
    "samples": "samples:command",
    "token create": "token:create",
    "token list": "token:show",
    "token revoke": "token:revoke",
    "evaluate reports": "evaluate_reports:command",
    "evaluate latency": "evaluate_latency:command",
    "evaluate entities": "evaluate_entities:command",
}
RENAMED = {"explain": "scores"}  # old names of commands, which work for one more release
GROUPS = {"token": "Manage the tokens of a server.", "train": "Train a model.", "evaluate": "Measure a model."}
LISTING = {"train": Families}  # classes of groups that list their own commands


def _make_app(help: str | None = None, listing: type[TyperGroup] = WholeDescriptions) -> typer.Typer:
    return typer.Typer(
        name=None if help else "capr",
        help=help,
        cls=listing,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )


typer_app = _make_app(listing=PlainErrors)
_groups = {name: _make_app(help, LISTING.get(name, WholeDescriptions)) for name, help in GROUPS.items()}
for _name in PROTOCOLS:
    _groups["evaluate"].command(_name)(evaluate_command(protocol(_name)))
for _words, _reference in COMMANDS.items():
    _group, _, _name = _words.rpartition(" ")
    _module, _, _function = _reference.partition(":")
    _command = getattr(import_module(f"capr.cli.{_module}"), _function)
    _groups.get(_group, typer_app).command(_name)(_command)
for _old, _new in RENAMED.items():
    typer_app.command(_old, hidden=True)(import_module(f"capr.cli.{_new}").command)
for _name, _group_app in _groups.items():
    if _name in LISTING:
        _group_app.callback()(lambda: None)
    typer_app.add_typer(_group_app, name=_name)


def _print_version(requested: bool) -> None:
    if requested:
        print(f"capr {__version__}")
        raise typer.Exit


@typer_app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Find the passage that answers a clinical question, and show its exact position."""


def app() -> None:
    """Run a command. The exit code is 0 for success, 1 for unreadable input, and 2 for an invalid command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")  # the encoding of the locale may lack characters
    try:
        typer_app()
    except CaprError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(1 if isinstance(error, ReadError) else 2)
    except BrokenPipeError:  # the program that reads the output has ended, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:  # a full disk, or a folder without write permission
        print(
            f"Error: {error.filename or 'output'}: {error.strerror}. Fix: check the path and the disk.", file=sys.stderr
        )
        sys.exit(2)
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        sys.exit(130)

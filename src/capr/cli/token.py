"""`capr token create`, `list` and `revoke`: who may ask a server."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from capr.cli import inputs
from capr.documents import CaprError
from capr.index.filters import pairs
from capr.serve.tokens import ROLES, Token, Tokens


def create(
    library: inputs.LibraryFolder,
    name: Annotated[str, typer.Option("--name", help="Of whoever will hold it, as the audit trail shows it.")],
    role: Annotated[str, typer.Option("--role", help=f"{', '.join(ROLES)}: each may do what those before it may.")] = (
        "reader"
    ),
    filter: Annotated[
        list[str] | None,
        typer.Option("--filter", metavar="NAME=VALUE", help="See only such documents; may be repeated."),
    ] = None,
    days: Annotated[float | None, typer.Option("--days", help="After which it expires; never, if not given.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Make a token. It is shown once: only its hash is kept.

    From the first token on, a server answers nobody without one. Whoever holds a token with filters is answered as if
    there were no other documents.

    Example: capr token create library --name "ward 3" --filter patient=p01 --days 90
    """
    restrictions: dict[str, list[str]] = {}
    for text in filter or ():
        for field, value, exclude in pairs(text):
            restrictions.setdefault(f"{field}{'!' if exclude else ''}", []).append(value)
    token, made = Tokens(library).create(name, role, restrictions, days)
    if as_json:
        print(json.dumps({"token": token, **_told(made)}, ensure_ascii=False))
        return
    print(token)
    until = f", until {made.expires}" if made.expires else ""
    seen = f", restricted to {_restrictions(made)}" if restrictions else ""
    inputs.terminal(stderr=True).print(f"{made.id}: {inputs.printable(made.name)}, {made.role}{seen}{until}")


def show(library: inputs.LibraryFolder, as_json: inputs.Json = False) -> None:
    """List all tokens that were made, without the tokens themselves.

    Example: capr token list library
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("id", "name", "role", "restricted to", "made", "expires", "state"):
        table.add_column(column, overflow="fold")
    known = Tokens(library).all()
    for one in known:
        if as_json:
            print(json.dumps({**_told(one), "state": one.state()}, ensure_ascii=False))
        else:
            row = (one.id, one.name, one.role, _restrictions(one), one.made, one.expires or "never", one.state())
            table.add_row(*map(inputs.printable, row))
    if not as_json:
        told = "There is no token, so that only this machine is served."
        inputs.terminal().print(table if known else told)


def revoke(
    library: inputs.LibraryFolder,
    tokens: Annotated[list[str], typer.Argument(metavar="ID|NAME...", help="As capr token list shows them.")],
) -> None:
    """Revoke tokens, by id or all of a holder; from then on they are not valid, at a server that runs, too.

    Example: capr token revoke library "ward 3"
    """
    known = Tokens(library)
    unknown = [name for name in tokens if not any(name in (one.id, one.name) for one in known.all())]
    if unknown:
        raise CaprError(f"there is no token {', '.join(unknown)}. Fix: capr token list {library} shows all.")
    for name in tokens:
        for one in known.revoke(name):
            print(f"{one.id} of {inputs.printable(one.name)} is revoked")


def _told(token: Token) -> dict[str, object]:
    return {name: value for name, value in asdict(token).items() if name != "hash"}


def _restrictions(token: Token) -> str:
    return ", ".join(
        f"{name.removesuffix('!')}{'!=' if name.endswith('!') else '='}{value}"
        for name, values in token.restrictions.items()
        for value in values
    )

"""`capr token create`, `list` and `revoke`: manage the tokens of a server."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from difflib import get_close_matches
from typing import Annotated

import typer

from capr.cli import inputs
from capr.documents import CaprError
from capr.index import Index
from capr.index.engines import is_library
from capr.index.filters import field_name, pairs
from capr.search import Library
from capr.search.conditions import unknown_value_notices, unmatched_filter_notices
from capr.search.unknown_names import SIMILAR
from capr.serve.state import open_state
from capr.serve.tokens import ROLES, Restrictions, Token, TokenStore

DAY = len("2024-03-18")
FIELDS = ("patient", "date", "type", "source", "file", "document", "id")  # fields that every library knows
State = Annotated[str, typer.Option("--state", metavar="FOLDER", help="The server's state folder, as for capr serve.")]


def create(
    library: inputs.LibraryLocation,
    name: Annotated[str, typer.Option("--name", help="The user of the token, for the audit trail.")],
    role: Annotated[str, typer.Option("--role", help=f"{', '.join(ROLES)}: each role includes the previous roles.")] = (
        "reader"
    ),
    filter: Annotated[
        list[str] | None,
        typer.Option(
            "--filter", metavar="NAME=VALUE", help="Restrict the token to matching documents. May be repeated."
        ),
    ] = None,
    days: Annotated[float | None, typer.Option("--days", help="Days until the token expires. Default: never.")] = None,
    state: State = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Create a token, and print it once: the server keeps only its hash.

    As soon as the first token exists, the server rejects requests without a token. A token with filters gives access
    to the documents that match the filters, as if the library had no others.

    Example: capr token create library --name "ward 3" --filter patient=p01 --days 90
    """
    restrictions: dict[str, list[str]] = {}
    for condition in filter or ():
        for field, value, exclude in pairs(condition):
            restrictions.setdefault(f"{field}{'!' if exclude else ''}", []).append(value)
    store = TokenStore(open_state(library, state).tokens)
    store.check(name, role, restrictions, days)
    count, notices = _visible_documents(library, restrictions) if restrictions else (None, ())
    secret, created = store.create(name, role, restrictions, days)
    console = inputs.terminal(stderr=True)
    if as_json:
        visible = {} if count is None else {"documents": count}
        print(json.dumps({"token": secret, **_public_fields(created), **visible}, ensure_ascii=False))
    else:
        if sys.stdout.isatty() and sys.stderr.isatty():
            print("Token (shown only now): ", end="", file=sys.stderr, flush=True)
        print(secret, flush=True)
        console.print(_summary(created, count))
    for notice in notices:
        console.print(f"Notice: {inputs.printable(notice)}")


def _summary(token: Token, documents: int | None) -> str:
    """Describe a new token in one line."""
    until = f", until {token.expires}" if token.expires else ""
    restricted = f", restricted to {_restrictions(token)}" if token.restrictions else ""
    visible = "" if documents is None else f"; sees {inputs.quantity(documents, 'document')}"
    return inputs.printable(f"{token.id}: {token.name}, {token.role}{restricted}{until}{visible}")


def _visible_documents(library: str, restrictions: Restrictions) -> tuple[int | None, Sequence[str]]:
    """Return the number of documents that match restrictions, with notices about filters; None without a library."""
    if not is_library(library):
        return None, ()
    with Library(library) as opened:
        _check_fields(restrictions, opened.index)
        filters = opened.resources.filters(restrictions)
        count = len(opened.ids(filters))
        if count:
            return count, list(unknown_value_notices(filters, opened.index))
        return count, [*unmatched_filter_notices(filters, opened.index), "the token sees no document"]


def _check_fields(restrictions: Restrictions, index: Index) -> None:
    """Raise `CaprError` for a field that no document has and whose name resembles that of another field."""
    for name in restrictions:
        field = field_name(name.removesuffix("!"))
        if field in FIELDS or index.has(field):
            continue
        if nearest := get_close_matches(field, (*FIELDS, *index.stats().fields), 1, SIMILAR):
            fix = f"write {nearest[0]}, or name a field that a document has (capr stats lists them)"
            raise CaprError(f"no document has the field {field!r}. Did you mean {nearest[0]}? Fix: {fix}.")


def show(library: inputs.LibraryLocation, state: State = "", as_json: inputs.Json = False) -> None:
    """List all tokens, without their secrets.

    Example: capr token list library
    """
    tokens = TokenStore(open_state(library, state, make=False).tokens).all()
    if as_json:
        for token in tokens:
            print(json.dumps({**_public_fields(token), "state": token.state()}, ensure_ascii=False))
        return
    console = inputs.terminal()
    if not tokens:
        console.print("There is no token: the server answers only this machine.")
        return
    rows = [("id", "role", "created", "expires", "state", "name"), *map(_row, tokens)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    restrictions = ["", *(_restrictions(token) for token in tokens)]
    for row, restricted in zip(rows, restrictions, strict=True):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        console.print(line, style="" if row is not rows[0] else "bold", soft_wrap=True)
        if restricted:
            console.print(f"{'':{widths[0]}}  restricted to {inputs.printable(restricted)}", soft_wrap=True)


def _row(token: Token) -> tuple[str, ...]:
    """Return the cells of a token, with days instead of times; the name, which may be long, is the last."""
    expires = token.expires[:DAY] or "never"
    return token.id, token.role, token.created[:DAY], expires, token.state(), inputs.printable(token.name)


def revoke(
    library: inputs.LibraryLocation,
    tokens: Annotated[
        list[str], typer.Argument(metavar="ID|NAME...", help="Ids or names, as capr token list shows them.")
    ],
    state: State = "",
) -> None:
    """Revoke tokens, by their id or all with a name; running servers reject them at once, too.

    Example: capr token revoke library "ward 3"
    """
    registered = TokenStore(open_state(library, state, make=False).tokens)
    unknown = [name for name in tokens if not any(name in (token.id, token.name) for token in registered.all())]
    if unknown:
        raise CaprError(f"there is no token {', '.join(unknown)}. Fix: capr token list {library} shows all.")
    for name in tokens:
        revoked = registered.revoke(name)
        for token in revoked:
            print(f"Revoked token {token.id} ({inputs.printable(token.name)})")
        if not revoked:
            for token in registered.all():
                if name in (token.id, token.name):
                    print(f"Token {token.id} ({inputs.printable(token.name)}) was already revoked")


def _public_fields(token: Token) -> dict[str, object]:
    """Return a token without its hash; `made` is the old name of `created`."""
    return {name: value for name, value in asdict(token).items() if name != "hash"} | {"made": token.created}


def _restrictions(token: Token) -> str:
    return ", ".join(
        f"{name.removesuffix('!')}{'!=' if name.endswith('!') else '='}{value}"
        for name, values in token.restrictions.items()
        for value in values
    )

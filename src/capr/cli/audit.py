"""`capr audit`: show the audit trail of a server."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from capr.cli import inputs
from capr.serve.audit import LOCAL, NOBODY, entries
from capr.serve.state import open_state
from capr.serve.tokens import Token, TokenStore

SHOWN_IDS = 5  # documents of an entry


def command(
    library: inputs.LibraryLocation,
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="A date or time: 2024-03-18, 2024-03-18T09:30.")
    ] = "",
    who: Annotated[
        str, typer.Option("--who", metavar="NAME", help="The name or the id of a token, local or nobody.")
    ] = "",
    document: Annotated[
        str, typer.Option("--document", metavar="ID", help="Only entries that returned or changed this document.")
    ] = "",
    state: Annotated[
        str, typer.Option("--state", metavar="FOLDER", help="The server's state folder, as for capr serve.")
    ] = "",
    audit: Annotated[
        Path | None,
        typer.Option(
            "--audit", metavar="FOLDER", help="The audit trail. Default: the audit folder inside the state folder."
        ),
    ] = None,
    as_json: inputs.Json = False,
) -> None:
    """Show who sent which request when, with which filters, and which documents the server returned.

    Example: capr audit library --since 2024-03-18 --document p01-2024-03-18-discharge
    """
    if audit is None:
        server_state = open_state(library, state, make=False)
        folder, tokens = server_state.audit, TokenStore(server_state.tokens)
    else:
        folder, tokens = audit, None  # the tokens may be elsewhere
    is_empty = True
    for entry in entries(folder, since=since, who=who, document=document):
        is_empty = False
        sys.stdout.write((json.dumps(entry, ensure_ascii=False) if as_json else inputs.printable(_line(entry))) + "\n")
    if is_empty:
        _check_caller(who, folder, () if tokens is None else tokens.all())
        conditions = {"since": since, "who": who, "document": document}
        given = ", ".join(f"--{name} {value}" for name, value in conditions.items() if value)
        inputs.terminal(stderr=True).print(inputs.printable(f"No entries{f' for {given}' if given else ''}."))


def _check_caller(who: str, folder: Path, tokens: Iterable[Token]) -> None:
    """Report a name or id that neither a token nor an entry has, and exit with code 1."""
    callers = {LOCAL, NOBODY, *(name for token in tokens for name in (token.name, token.id))}
    callers.update(str(entry.get(name)) for entry in entries(folder) for name in ("who", "token") if entry.get(name))
    if not who or who in callers:
        return
    nearest = get_close_matches(who, sorted(callers), 1)
    suggestion = f" Did you mean {nearest[0]!r}?" if nearest else ""
    fact = f"No token has the name or id {who!r}.{suggestion} capr token list shows all."
    inputs.terminal(stderr=True).print(inputs.printable(fact))
    raise typer.Exit(1)


def _line(entry: dict[str, Any]) -> str:
    """Return an entry as one line, the most important fields first."""
    if "damaged" in entry:
        return f"{entry['damaged']} is damaged and cannot be read"
    details = [f"{name}={value!r}" for name, value in entry.get("query", {}).items()]
    details += [f"{name}={value}" for name, value in entry.get("filters", {}).items()]
    details += [f"job={entry['job']}"] if "job" in entry else []
    requested = entry.get("requested") or entry.get("asked")  # the old name, in entries of older versions
    details += [f"requested {_ids(requested)}"] if requested else []
    details += [f"-> {_ids(entry['documents'])}"] if entry.get("documents") else []
    who = entry.get("who") or NOBODY
    request = f"{entry.get('method', '')} {entry.get('path') or entry.get('route', '')}".strip()
    return "  ".join(filter(None, (str(entry.get("time", "")), who, request, str(entry.get("status", "")), *details)))


def _ids(ids: list[str]) -> str:
    more = f" and {len(ids) - SHOWN_IDS} more" if len(ids) > SHOWN_IDS else ""
    return f"{', '.join(ids[:SHOWN_IDS])}{more}"

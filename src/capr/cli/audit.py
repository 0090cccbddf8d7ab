"""`capr audit`: who searched or opened what?"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from capr.cli import inputs
from capr.serve.audit import entries

SHOWN = 5  # documents of an entry


def command(
    library: inputs.LibraryFolder,
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="A day or a moment: 2024-03-18, 2024-03-18T09:30.")
    ] = "",
    who: Annotated[str, typer.Option("--who", metavar="NAME", help="The name or the id of a token.")] = "",
    document: Annotated[
        str, typer.Option("--document", metavar="ID", help="Only where this one was shown or changed.")
    ] = "",
    audit: Annotated[
        Path | None, typer.Option("--audit", metavar="FOLDER", help="Of the trail, if not audit in the library.")
    ] = None,
    as_json: inputs.Json = False,
) -> None:
    """Show the audit trail of a server: who asked what, when, with which filters, and which documents were shown.

    Example: capr audit library --since 2024-03-18 --document p01-2024-03-18-discharge
    """
    for entry in entries(audit or library / "audit", since=since, who=who, document=document):
        sys.stdout.write((json.dumps(entry, ensure_ascii=False) if as_json else inputs.printable(_line(entry))) + "\n")


def _line(entry: dict[str, Any]) -> str:
    """An entry in one line, the most important first."""
    if "damaged" in entry:
        return f"{entry['damaged']} is damaged and cannot be read"
    told = [f"{name}={value!r}" for name, value in entry.get("query", {}).items()]
    told += [f"{name}={value}" for name, value in entry.get("filters", {}).items()]
    told += [f"job={entry['job']}"] if "job" in entry else []
    told += [f"asked for {_some(entry['asked'])}"] if entry.get("asked") else []
    told += [f"-> {_some(entry['documents'])}"] if entry.get("documents") else []
    who = entry.get("who") or "nobody"
    place = f"{entry.get('method', '')} {entry.get('path') or entry.get('route', '')}".strip()
    return "  ".join(filter(None, (str(entry.get("time", "")), who, place, str(entry.get("status", "")), *told)))


def _some(ids: list[str]) -> str:
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    return f"{', '.join(ids[:SHOWN])}{more}"

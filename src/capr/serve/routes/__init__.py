"""Routes: one file per resource of the server, and one line for it in `ROUTES`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from fastapi import APIRouter

API = "/api"
# The name of a module of this package that has a `router`, and the prefix of its addresses. If several modules have an
# address, the first answers.
ROUTES = (
    ("searching", API),
    ("facets", API),
    ("writing", API),
    ("documents", API),
    ("account", API),
    ("feedback", API),
    ("operations", ""),
    ("api_browser", ""),
    ("page", ""),
)


def routers() -> Iterator[tuple[APIRouter, str]]:
    """Yield each router with the prefix of its addresses."""
    for name, prefix in ROUTES:
        yield import_module(f"{__name__}.{name}").router, prefix

"""The API browser at /docs: Swagger UI from an installed package, with nothing from other sites."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from capr.serve.problems import ProblemError
from capr.serve.routes.page import cached, page_files, read_files

router = APIRouter(include_in_schema=False)


@router.head("/docs")
@router.get("/docs")
async def browser(request: Request) -> Response:
    """Show the API browser."""
    return cached(*page_files()["api_browser.html"], request)


@router.head("/docs/{name}")
@router.get("/docs/{name}")
async def browser_file(name: str, request: Request) -> Response:
    """Return a file of Swagger UI."""
    if not name.startswith("swagger-ui") or name not in swagger_files():
        raise ProblemError(404, "the API browser has no such file", "open the API browser at /docs")
    return cached(*swagger_files()[name], request)


@cache
def swagger_files() -> dict[str, tuple[bytes, str, str]]:
    """Return the content, ETag and media type of the files of Swagger UI by their names."""
    return read_files(Path(str(files("fastapi_offline").joinpath("static"))))

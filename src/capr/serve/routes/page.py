"""The web page: files that lie beside this package, and nothing from elsewhere."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from capr.serve.problems import ProblemError

router = APIRouter(include_in_schema=False)
FOLDER = Path(str(files("capr.serve").joinpath("page")))
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".webmanifest": "application/manifest+json",
}


@router.head("/")
@router.get("/")
async def index(request: Request) -> Response:
    """The page itself."""
    return _file("index.html", request)


@router.head("/page/{name:path}")
@router.get("/page/{name:path}")
async def part(name: str, request: Request) -> Response:
    """What the page is made of."""
    return _file(name, request)


def _file(name: str, request: Request) -> Response:
    """A file that is in the folder, under exactly that name: no path can lead out of it."""
    found = _files()
    if name not in found:
        raise ProblemError(404, "there is no such file of the page", "open the page at /")
    content, tag, kind = found[name]
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=kind)


@cache
def _files() -> dict[str, tuple[bytes, str, str]]:
    """Of each file of the page, by its name: content, tag and kind."""
    found = {}
    for path in FOLDER.rglob("*"):
        if path.suffix in KINDS:
            content = path.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            found[path.relative_to(FOLDER).as_posix()] = (content, tag, KINDS[path.suffix])
    return found

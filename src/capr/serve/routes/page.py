"""The web page: files that lie beside this package, and nothing from elsewhere."""

from __future__ import annotations

import hashlib
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
    found = {path.relative_to(FOLDER).as_posix(): path for path in FOLDER.rglob("*") if path.suffix in KINDS}
    if name not in found:
        raise ProblemError(404, "there is no such file of the page", "open the page at /")
    content = found[name].read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=KINDS[found[name].suffix])

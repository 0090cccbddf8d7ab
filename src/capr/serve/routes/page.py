"""The web page: files of this package, and nothing from other sites."""

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
MEDIA_TYPES = {
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
    """Show the page."""
    return _file("index.html", request)


@router.head("/page/{name:path}")
@router.get("/page/{name:path}")
async def page_file(name: str, request: Request) -> Response:
    """Return a script, style sheet or image of the page."""
    return _file(name, request)


def _file(name: str, request: Request) -> Response:
    """Return a file of the folder by its exact name, so that no path leads out of the folder."""
    files = page_files()
    if name not in files:
        raise ProblemError(404, "the page has no such file", "open the page at /")
    content, tag, media = files[name]
    return cached(content, tag, media, request)


def cached(content: bytes, tag: str, media: str, request: Request) -> Response:
    """Return a file, or 304 if the browser has it already."""
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=media)


@cache
def page_files() -> dict[str, tuple[bytes, str, str]]:
    """Return the content, ETag and media type of each file of the page by its name."""
    return read_files(FOLDER)


def read_files(folder: Path) -> dict[str, tuple[bytes, str, str]]:
    """Read the files of a folder; return the content, ETag and media type of each by its path in the folder."""
    files = {}
    for path in folder.rglob("*"):
        if path.suffix in MEDIA_TYPES:
            content = path.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            files[path.relative_to(folder).as_posix()] = (content, tag, MEDIA_TYPES[path.suffix])
    return files

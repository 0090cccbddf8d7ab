"""The application: its routes, its OpenAPI document, and the replies to errors."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute, Match

from capr.documents import CaprError
from capr.search import Library
from capr.serve.middleware import INSIDE, Middleware
from capr.serve.problems import ProblemError, invalid
from capr.serve.responses import PROBLEMS, describe_problems
from capr.serve.routes import API, routers
from capr.serve.server import Server
from capr.serve.settings import Settings
from capr.version import __version__

ABOUT = """Find the passage that answers a clinical question, and show exactly where it is.

All spans are half-open ranges `[begin, end)` of characters (Unicode code points) of a document's text.
Send a token as `Authorization: Bearer capr_...`. Errors are RFC 9457 problem documents with a `fix`."""
METHODS = ("GET", "HEAD", "POST", "DELETE")
FIXES = {
    404: ("the server has no such address", "look the address up in the API browser at /docs"),
    405: ("this address does not allow this method", "use a method that api/openapi.json lists"),
    400: ("the request is not well-formed", "send the fields as api/openapi.json describes them"),
}


def application(settings: Settings, library: Library | None = None) -> Middleware:
    """Return the application inside its middleware, for any ASGI server.

    Args:
        settings: how to serve.
        library: an open library, instead of the one that the settings name.
    """
    server = Server(settings, library)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await server.start()
        yield
        await server.stop()

    app = FastAPI(
        title="capr",
        version=__version__,
        description=ABOUT,
        lifespan=lifespan,
        docs_url=None,  # FastAPI's pages load scripts from other sites; see routes/api_browser.py
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.openapi = partial(_openapi, app)  # type: ignore[method-assign]
    app.state.server = server
    for router, prefix in routers():
        app.include_router(router, prefix=prefix, responses=PROBLEMS if prefix == API else None)
    for kind in (ProblemError, CaprError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _problem)
    return Middleware(app, server)


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, with the schema of problem documents."""
    if app.openapi_schema is None:
        describe_problems(FastAPI.openapi(app))
    return FastAPI.openapi(app)


async def _problem(request: Request, error: Exception) -> Response:
    problem = _as_problem(error)
    response = problem.response(request.scope["path"])
    if problem.status == 405:
        response.headers["Allow"] = ", ".join(_methods(request))
    return response


def _methods(request: Request) -> list[str]:
    """Return the methods that the address of a request allows."""
    methods = ("GET", "HEAD", "POST", "DELETE")
    return [
        method for method in methods if any(_matches(route, request, method) for route in request.app.router.routes)
    ]


def _matches(route: BaseRoute, request: Request, method: str) -> bool:
    return route.matches({**request.scope, "method": method})[0] is Match.FULL


def _as_problem(error: Exception) -> ProblemError:
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, CaprError):
        return ProblemError.of(error)
    if isinstance(error, RequestValidationError):
        return invalid(error.errors())
    if isinstance(error, HTTPException):
        phrase = HTTPStatus(error.status_code).phrase.lower()
        fact, fix = FIXES.get(error.status_code, (phrase, "send what api/openapi.json describes"))
        return ProblemError(error.status_code, fact, fix)
    return ProblemError(500, *INSIDE)  # the middleware has logged the error

"""The application: the routes, and what becomes of errors in them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute, Match

import capr
from capr.documents import CaprError
from capr.search import Library
from capr.serve.gate import INSIDE, Gate
from capr.serve.problems import NOT_THERE, ProblemError, invalid
from capr.serve.replies import PROBLEMS
from capr.serve.routes import choosing, documents, feedback, operations, own, page, searching, writing
from capr.serve.server import Server
from capr.serve.settings import Settings

ABOUT = """Finds the passage that answers a clinical question, and shows exactly where it stands.

All spans are half-open ranges `[begin, end)` of characters (Unicode code points) of a document's text.
Send a token as `Authorization: Bearer capr_...`. Errors are RFC 9457 problem documents with a `fix`."""
FIXES = {
    404: NOT_THERE,
    405: ("this cannot be done with what is at that address", "use a method that api/openapi.json names"),
    400: ("the request is not well-formed", "send the fields as api/openapi.json describes them"),
}


def application(settings: Settings, library: Library | None = None) -> Gate:
    """The application with the gate before it, for any ASGI server.

    Args:
        settings: how to serve.
        library: instead of the one that the settings name.
    """
    server = Server(settings, library)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        await server.start()
        yield
        await server.stop()

    app = FastAPI(
        title="capr", version=capr.__version__, description=ABOUT, lifespan=life,
        docs_url=None, redoc_url=None, openapi_url=None,  # these pages fetch programs from elsewhere
        redirect_slashes=False,
    )  # fmt: skip
    app.state.server = server
    for module in (searching, choosing, writing, documents, own, feedback):
        app.include_router(module.router, prefix="/api", responses=PROBLEMS)
    for module in (operations, page):
        app.include_router(module.router)
    for kind in (ProblemError, CaprError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _problem)
    return Gate(app, server)


async def _problem(request: Request, error: Exception) -> Response:
    problem = _as_problem(error)
    response = problem.response(request.scope["path"])
    if problem.status == 405:
        response.headers["Allow"] = ", ".join(_methods(request))
    return response


def _methods(request: Request) -> list[str]:
    """What can be done with what is at the address of a request."""
    known = ("GET", "HEAD", "POST", "DELETE")
    return [name for name in known if any(_fits(route, request, name) for route in request.app.router.routes)]


def _fits(route: BaseRoute, request: Request, method: str) -> bool:
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
    return ProblemError(500, *INSIDE)  # the gate writes what it was into the log

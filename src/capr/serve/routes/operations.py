"""Operations: the health, the readiness and the metrics of the server, and its OpenAPI document."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from capr.serve.api_route import ApiRoute
from capr.serve.metrics import MEDIA
from capr.serve.problems import SOON, ProblemError
from capr.serve.request_context import Reader, reply
from capr.serve.responses import ALIVE, METRICS, READY

router = APIRouter(tags=["operations"], default_response_class=Response, route_class=ApiRoute)


@router.head("/health", include_in_schema=False)
@router.get("/health", summary="Check whether the process is alive", responses=ALIVE)
async def health() -> Response:
    """Answer 200 for as long as the process runs."""
    return reply({"status": "alive"})


@router.head("/ready", include_in_schema=False)
@router.get("/ready", summary="Check whether the server is ready", responses=READY)
async def ready(request: Request) -> Response:
    """Answer 200 once the library is open and all models are loaded; 503 before that, and while the server stops."""
    if not request.app.state.server.is_ready:
        raise ProblemError(503, "the server is not ready", "try again in a moment", SOON)
    return reply({"status": "ready"})


@router.get("/metrics", summary="Show metrics", responses=METRICS)
async def metrics(context: Reader) -> Response:
    """Show request counts, durations and memory for Prometheus. The token must have no restrictions."""
    if context.caller.filters:
        fact = "metrics cover all documents, and this token is restricted to some"
        raise ProblemError(403, fact, "use a token without restrictions")
    return Response(context.server.metrics.text(), media_type=MEDIA)


@router.get("/api/openapi.json", summary="Show the OpenAPI document", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """Show the OpenAPI document. It needs no token, because it says nothing about the library."""
    return reply(request.app.openapi())

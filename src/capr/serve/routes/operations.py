"""For those who run the server: is it alive, is it ready, and how much does it do?"""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from capr.serve.exchange import Reader, reply
from capr.serve.metrics import MEDIA
from capr.serve.problems import SOON, ProblemError
from capr.serve.replies import ALIVE, METRICS, READY

router = APIRouter(tags=["operations"], default_response_class=Response)


@router.head("/health", include_in_schema=False)
@router.get("/health", summary="Is it alive?", responses=ALIVE)
async def health() -> Response:
    """200 as long as the process answers."""
    return reply({"status": "alive"})


@router.head("/ready", include_in_schema=False)
@router.get("/ready", summary="Is it ready?", responses=READY)
async def ready(request: Request) -> Response:
    """200 once the library is open and all models are loaded; 503 until then, and while the server stops."""
    if not request.app.state.server.is_ready:
        raise ProblemError(503, "the server is not ready", "try again in a moment", SOON)
    return reply({"status": "ready"})


@router.get("/metrics", summary="How much does it do?", responses=METRICS)
async def metrics(exchange: Reader) -> Response:
    """Counts of requests, seconds and memory, for Prometheus; with a token that is not restricted."""
    if exchange.caller.filters:
        fact = "metrics are about all documents, and this token is restricted to some"
        raise ProblemError(403, fact, "use a token without restrictions")
    return Response(exchange.server.metrics.text(), media_type=MEDIA)


@router.get("/api/openapi.json", summary="This description", include_in_schema=False)
async def description(request: Request, _: Reader) -> Response:
    """The OpenAPI document."""
    return reply(request.app.openapi())

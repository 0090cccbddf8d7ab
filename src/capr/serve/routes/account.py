"""The caller and its saved searches: `me` and `saved`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from capr.serve.api_route import ApiRoute
from capr.serve.request_bodies import SavedSearchBody
from capr.serve.request_context import Reader, reply
from capr.serve.responses import ME, NOTHING, SAVED, SAVED_ONE

router = APIRouter(tags=["account"], default_response_class=Response, route_class=ApiRoute)
SavedId = Annotated[str, Path(max_length=64)]


@router.get("/me", summary="Show the caller", responses=ME)
async def me(context: Reader) -> Response:
    """The name, role and restrictions of the token, and what this server can do."""
    caller, models = context.caller, context.server.models
    scores = next((name for name in ("discourse", "encoder") if models.get(name) == "loaded"), "words")
    return reply(
        {
            "name": caller.name,
            "role": caller.role,
            "restrictions": dict(caller.restrictions),
            "open": caller.open,
            "ready": context.server.is_ready,
            "features": {
                "ask": models.get("reader") == "loaded",
                "scores": scores,
                "deidentified": context.server.deidentifier is not None,
            },
            "limits": {
                "k": context.server.settings.max_k,
                "query": context.server.settings.max_query_length,
            },
        }
    )


@router.get("/saved", summary="List saved searches", responses=SAVED)
async def saved(context: Reader) -> Response:
    """The saved searches of the token, the latest first."""
    database, who = context.server.database, context.caller.id
    return reply({"saved": await context.run_light(lambda *_: database.saved_searches(who))})


@router.post("/saved", summary="Save a search", status_code=201, responses=SAVED_ONE)
async def save(body: SavedSearchBody, context: Reader) -> Response:
    """Save the address of a search under a name."""
    database, who = context.server.database, context.caller.id
    search = await context.run_light(lambda *_: database.save_search(who, body.name, body.address))
    context.record.more = {"saved": search["id"]}
    return reply(search, 201)


@router.delete("/saved/{id}", summary="Remove a saved search", status_code=204, responses=NOTHING)
async def forget(id: SavedId, context: Reader) -> Response:
    """Remove a saved search of the token."""
    database, who = context.server.database, context.caller.id
    context.record.more = {"saved": id}
    await context.run_light(lambda *_: database.remove_search(who, id))
    return Response(status_code=204)

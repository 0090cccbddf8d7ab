"""What belongs to whoever asks: `me`, and saved searches."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from capr.serve.bodies import SavedBody
from capr.serve.exchange import Reader, reply
from capr.serve.replies import ME, NOTHING, SAVED, SAVED_ONE

router = APIRouter(tags=["own"], default_response_class=Response)
SavedId = Annotated[str, Path(max_length=64)]


@router.get("/me", summary="Who am I?", responses=ME)
async def me(exchange: Reader) -> Response:
    """The name and the role of the token, what it is restricted to, and what this server can do."""
    caller, models = exchange.caller, exchange.server.models
    scores = next((name for name in ("discourse", "encoder") if models.get(name) == "there"), "words")
    return reply({
        "name": caller.name,
        "role": caller.role,
        "restrictions": dict(caller.restrictions),
        "open": caller.open,
        "ready": exchange.server.is_ready,
        "features": {
            "ask": models.get("reader") == "there", "scores": scores,
            "deidentified": exchange.server.deidentifier is not None,
        },
        "limits": {
            "k": exchange.server.settings.largest_k, "query": exchange.server.settings.longest_query,
        },
    })  # fmt: skip


@router.get("/saved", summary="List saved searches", responses=SAVED)
async def saved(exchange: Reader) -> Response:
    """The searches that the holder of the token has saved, the latest first."""
    desk, who = exchange.server.desk, exchange.caller.id
    return reply({"saved": await exchange.light(lambda *_: desk.saved(who))})


@router.post("/saved", summary="Save a search", status_code=201, responses=SAVED_ONE)
async def save(body: SavedBody, exchange: Reader) -> Response:
    """Keeps the address of a search under a name."""
    desk, who = exchange.server.desk, exchange.caller.id
    made = await exchange.light(lambda *_: desk.save(who, body.name, body.address))
    exchange.record.more = {"saved": made["id"]}
    return reply(made, 201)


@router.delete("/saved/{id}", summary="Remove a saved search", status_code=204, responses=NOTHING)
async def forget(id: SavedId, exchange: Reader) -> Response:
    """Removes a search that the holder of the token has saved."""
    desk, who = exchange.server.desk, exchange.caller.id
    exchange.record.more = {"saved": id}
    await exchange.light(lambda *_: desk.forget(who, id))
    return Response(status_code=204)

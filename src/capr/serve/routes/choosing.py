"""What could be asked for: `facets`, `patients`, `suggest`, `aspects` and `stats`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from capr.annotate.aspects import aspects as known_aspects
from capr.annotate.query import heading
from capr.search import Library
from capr.serve.bodies import FacetsBody, Limit, Offset, Typed
from capr.serve.exchange import Reader, reply
from capr.serve.masking import Masking
from capr.serve.replies import ASPECTS, FACETS, PATIENTS, STATS, SUGGESTIONS

router = APIRouter(tags=["choosing"], default_response_class=Response)
K = Annotated[int, Query(ge=1, le=100, description="How many to give, at most.")]


@router.post("/facets", summary="Count documents", responses=FACETS)
async def facets(body: FacetsBody, exchange: Reader) -> Response:
    """How many documents there are of each patient, type, source, aspect and month, among those that pass the filters.

    What is counted of a field leaves its own filter out, so that one sees what else could be chosen.
    """
    exchange.record.filters = body.filters

    def counted(library: Library, masking: Masking) -> dict[str, Any]:
        found = library.facets(body.filters).as_json()
        for one in found["aspect"]:
            one["value"] = masking.short(one["value"], {})
        return found

    found = await exchange.light(counted)
    exchange.record.more = {"patients": [one["value"] for one in found["patient"]]}
    return reply(found)


@router.get("/patients", summary="List patients", responses=PATIENTS)
async def patients(exchange: Reader, typed: Typed = "", offset: Offset = 0, limit: Limit = 50) -> Response:
    """The patients whose name begins so, with their number of documents, and the days of the first and the last."""
    exchange.record.query = {"typed": typed}

    def listed(library: Library, masking: Masking) -> dict[str, Any]:
        found = library.patients(typed)
        rows = [asdict(one) for one in found[offset : offset + limit]]
        if masking:
            rows = [{**row, "first": row["first"][:4], "last": row["last"][:4]} for row in rows]
        return {"patients": rows, "total": len(found)}

    found = await exchange.light(listed)
    exchange.record.more = {"patients": [row["patient"] for row in found["patients"]]}
    return reply(found)


@router.get("/suggest", summary="Complete the name of an entity", responses=SUGGESTIONS)
async def suggest(exchange: Reader, typed: Typed = "", k: K = 10) -> Response:
    """What somebody who types may mean; with a restricted token, only what its documents mention."""
    exchange.record.query = {"typed": typed}

    def completed(library: Library, _: Masking) -> dict[str, Any]:
        found = library.suggest(typed, k)
        return {
            "suggestions": [{"name": n, "kind": concept.kind, "concept": concept.as_json()} for n, concept in found]
        }

    return reply(await exchange.light(completed))


@router.get("/aspects", summary="Complete the name of an aspect", responses=ASPECTS)
async def aspects(exchange: Reader, typed: Typed = "", k: K = 10) -> Response:
    """The aspects of the library that begin so, those that most documents have first."""
    exchange.record.query = {"typed": typed}

    def completed(library: Library, masking: Masking) -> dict[str, Any]:
        found = [(masking.short(name, {}), count) for name, count in library.aspects(typed, k)]
        return {
            "aspects": [
                {"name": name, "heading": heading(name) if name in known_aspects() else name, "documents": count}
                for name, count in found
            ]
        }

    return reply(await exchange.light(completed))


@router.get("/stats", summary="Count what there is", responses=STATS)
async def stats(exchange: Reader) -> Response:
    """How much the library holds; with a restricted token, of what it may see."""

    def counted(library: Library, _: Masking) -> dict[str, Any]:
        found = asdict(library.stats())
        for model in ("encoder", "discourse"):
            if found[model]:
                del found[model]["folder"]
        return found

    return reply(await exchange.light(counted))

"""The contents of the library: `facets`, `patients`, `suggest`, `aspects` and `stats`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from capr.search import Library
from capr.segment.aspects import aspects as known_aspects
from capr.segment.aspects import heading
from capr.serve.api_route import ApiRoute
from capr.serve.masking import Masking
from capr.serve.request_bodies import FacetsBody, Limit, Offset, OldPrefix, Prefix
from capr.serve.request_context import Reader, reply
from capr.serve.responses import ASPECTS, FACETS, PATIENTS, STATS, SUGGESTIONS

router = APIRouter(tags=["facets"], default_response_class=Response, route_class=ApiRoute)
K = Annotated[int, Query(ge=1, le=100, description="Maximum number of completions.")]


@router.post("/facets", summary="Count documents", responses=FACETS)
async def facets(body: FacetsBody, context: Reader) -> Response:
    """Count the documents of each patient, type, source, aspect and month among those that match the filters.

    The counts of a field ignore the filter on that field, so that they show the alternatives.
    """
    context.record.filters = body.filters

    def count(library: Library, masking: Masking) -> dict[str, Any]:
        counts = library.facets(body.filters).as_json()
        for aspect in counts["aspect"]:
            aspect["value"] = masking.short_text(aspect["value"], {})
        return counts

    counts = await context.run_light(count)
    context.record.more = {"patients": [patient["value"] for patient in counts["patient"]]}
    return reply(counts)


@router.get("/patients", summary="List patients", responses=PATIENTS)
async def patients(
    context: Reader, prefix: Prefix = "", typed: OldPrefix = "", offset: Offset = 0, limit: Limit = 50
) -> Response:
    """List the patients whose name begins with the prefix, with the dates of their first and last documents."""
    prefix = prefix or typed
    context.record.query = {"prefix": prefix}

    def list_patients(library: Library, masking: Masking) -> dict[str, Any]:
        matches = library.patients(prefix)
        rows = [asdict(patient) for patient in matches[offset : offset + limit]]
        if masking:
            rows = [{**row, "first": row["first"][:4], "last": row["last"][:4]} for row in rows]
        return {"patients": rows, "total": len(matches)}

    page = await context.run_light(list_patients)
    context.record.more = {"patients": [row["patient"] for row in page["patients"]]}
    return reply(page)


@router.get("/suggest", summary="Complete the name of an entity", responses=SUGGESTIONS)
async def suggest(context: Reader, prefix: Prefix = "", typed: OldPrefix = "", k: K = 10) -> Response:
    """Complete the name of an entity. A restricted token gets only entities that its documents mention."""
    prefix = prefix or typed
    context.record.query = {"prefix": prefix}

    def complete(library: Library, _: Masking) -> dict[str, Any]:
        return {
            "suggestions": [
                {"name": name, "kind": concept.kind, "concept": concept.as_json()}
                for name, concept in library.suggest(prefix, k)
            ]
        }

    return reply(await context.run_light(complete))


@router.get("/aspects", summary="Complete the name of an aspect", responses=ASPECTS)
async def aspects(context: Reader, prefix: Prefix = "", typed: OldPrefix = "", k: K = 10) -> Response:
    """Complete the name of an aspect; the aspects that most documents have come first."""
    prefix = prefix or typed
    context.record.query = {"prefix": prefix}

    def complete(library: Library, masking: Masking) -> dict[str, Any]:
        counts = [(masking.short_text(name, {}), count) for name, count in library.aspects(prefix, k)]
        return {
            "aspects": [
                {"name": name, "heading": heading(name) if name in known_aspects() else name, "documents": count}
                for name, count in counts
            ]
        }

    return reply(await context.run_light(complete))


@router.get("/stats", summary="Show the size of the library", responses=STATS)
async def stats(context: Reader) -> Response:
    """Count documents, passages, mentions and vectors. A restricted token gets the counts of its documents."""

    def count(library: Library, _: Masking) -> dict[str, Any]:
        counts = library.stats().as_json()
        for model in ("encoder", "discourse"):
            if counts[model]:
                del counts[model]["folder"]
        return counts

    return reply(await context.run_light(count))

"""`feedback`: judgements of hits, which models can be trained on."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from capr.documents import CaprError
from capr.search import Library
from capr.serve.api_route import ApiRoute
from capr.serve.feedback_export import pairs
from capr.serve.masking import Masking
from capr.serve.request_bodies import FeedbackBody, OwnJudgementsBody
from capr.serve.request_context import Admin, Reader, RequestContext, reply
from capr.serve.responses import JUDGED, JUDGEMENTS, OLD_JUDGEMENTS, PAIRS

router = APIRouter(prefix="/feedback", tags=["feedback"], default_response_class=Response, route_class=ApiRoute)


@router.post("", summary="Judge a passage", status_code=201, responses=JUDGED)
async def judge(body: FeedbackBody, context: Reader) -> Response:
    """Save whether a passage answers a query. A new judgement replaces the old one; null withdraws it."""
    context.record.query, context.record.documents = body.parts, [body.document]
    context.record.more = {"passage": [body.begin, body.end], "answers": body.answers}
    database, who, limit = context.server.database, context.caller.id, context.server.settings.max_judgements

    def save(library: Library, _: Masking) -> None:
        document = library.document(body.document)
        if not body.begin < body.end <= len(document.text):
            fact = (
                f"[{body.begin}, {body.end}) is not a span of the document, which has {len(document.text):,} characters"
            )
            raise CaprError(f"{fact}. Fix: send the begin and end offsets of a hit.")
        database.judge(who, body.parts, (document.id, body.begin, body.end), body.answers, limit)

    await context.run_light(save)
    return reply({"answers": body.answers}, 201)


@router.post("/own", summary="List your judgements of a query", responses=JUDGEMENTS)
async def own(body: OwnJudgementsBody, context: Reader) -> Response:
    """List the judgements of the token for one query, of documents that are still in the library."""
    return reply({"judgements": await _judgements(body, context)})


@router.post("/given", summary="List your judgements (old name)", responses=OLD_JUDGEMENTS, deprecated=True)
async def given(body: OwnJudgementsBody, context: Reader) -> Response:
    """List the judgements of the token for one query, at the old address of `own`."""
    return reply({"given": await _judgements(body, context)})


async def _judgements(body: OwnJudgementsBody, context: RequestContext) -> list[dict[str, Any]]:
    context.record.query = body.parts
    database, who = context.server.database, context.caller.id

    def read(library: Library, _: Masking) -> list[dict[str, Any]]:
        judgements = database.judgements_of(who, body.parts)
        existing = library.index.digests([judgement.document for judgement in judgements])
        return [
            {
                "document": judgement.document,
                "begin": judgement.begin,
                "end": judgement.end,
                "answers": bool(judgement.answers),
            }
            for judgement in judgements
            if judgement.document in existing
        ]

    rows = await context.run_light(read)
    context.record.documents = list(dict.fromkeys(row["document"] for row in rows))
    return rows


@router.get("/export", summary="Export feedback as training pairs", responses=PAIRS)
async def export(context: Admin) -> Response:
    """Export all feedback for `capr train bi`, `poly` and `cross`. Save it as feedback.pairs.gz."""
    database = context.server.database

    def make(library: Library, masking: Masking) -> tuple[bytes, list[str]]:
        return pairs(database.judgements(), library, masking)

    content, ids = await context.run_heavy(make)
    context.record.documents = ids
    headers = {"Content-Disposition": 'attachment; filename="feedback.pairs.gz"'}
    return Response(content, headers=headers, media_type="application/gzip")

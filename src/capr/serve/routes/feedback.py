"""`feedback`: does this passage answer? What people say can be learned from."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from capr.documents import CaprError
from capr.search import Library
from capr.serve.bodies import FeedbackBody, GivenBody
from capr.serve.exchange import Admin, Reader, reply
from capr.serve.learning import pairs
from capr.serve.masking import Masking
from capr.serve.replies import GIVEN, JUDGED, PAIRS

router = APIRouter(prefix="/feedback", tags=["feedback"], default_response_class=Response)


@router.post("", summary="Say whether a passage answers", status_code=201, responses=JUDGED)
async def judge(body: FeedbackBody, exchange: Reader) -> Response:
    """Keeps what the holder of the token says of a passage; the last word counts, and null takes it back."""
    exchange.check(query=body.query, entity=body.entity, aspect=body.aspect)
    exchange.record.query, exchange.record.documents = body.told, [body.document]
    exchange.record.more = {"passage": [body.begin, body.end], "answers": body.answers}
    desk, who, most = exchange.server.desk, exchange.caller.id, exchange.server.settings.feedback

    def keep(library: Library, _: Masking) -> None:
        document = library.document(body.document)
        if not body.begin < body.end <= len(document.text):
            fact = (
                f"[{body.begin}, {body.end}) is no range of the document, which has {len(document.text):,} characters"
            )
            raise CaprError(f"{fact}. Fix: send begin and end of a hit.")
        desk.judge(who, body.told, (document.id, body.begin, body.end), body.answers, most)

    await exchange.light(keep)
    return reply({"answers": body.answers}, 201)


@router.post("/given", summary="What did I say of passages?", responses=GIVEN)
async def given(body: GivenBody, exchange: Reader) -> Response:
    """What the holder of the token has said of passages, for one query; of documents that are there."""
    exchange.check(query=body.query, entity=body.entity, aspect=body.aspect)
    exchange.record.query = body.told
    desk, who = exchange.server.desk, exchange.caller.id

    def said(library: Library, _: Masking) -> list[dict[str, Any]]:
        found = desk.judged(who, body.told)
        there = library.index.digests([one.document for one in found])
        return [
            {"document": one.document, "begin": one.begin, "end": one.end, "answers": bool(one.answers)}
            for one in found
            if one.document in there
        ]

    found = await exchange.light(said)
    exchange.record.documents = list(dict.fromkeys(one["document"] for one in found))
    return reply({"given": found})


@router.get("/export", summary="Feedback as training pairs", responses=PAIRS)
async def export(exchange: Admin) -> Response:
    """All feedback in the form that `capr train bi`, `poly` and `cross` read; save it as feedback.pairs.gz."""
    desk = exchange.server.desk

    def made(library: Library, masking: Masking) -> tuple[bytes, list[str]]:
        return pairs(desk.judgements(), library, masking)

    content, ids = await exchange.heavy(made)
    exchange.record.documents = ids
    headers = {"Content-Disposition": 'attachment; filename="feedback.pairs.gz"'}
    return Response(content, headers=headers, media_type="application/gzip")

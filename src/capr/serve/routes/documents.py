"""`documents`: the list, one of them with all that is known of it, a passage, and the scores of its sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from capr.annotate import Mention
from capr.documents import Document
from capr.index import Stored
from capr.search import Library
from capr.search.hit import mention_as_json
from capr.segment import sections
from capr.serve.bodies import Id, Limit, Offset, ScoresBody
from capr.serve.exchange import Reader, reply
from capr.serve.masking import Masking
from capr.serve.replies import DOCUMENT, DOCUMENTS, PASSAGE, SCORES

router = APIRouter(prefix="/documents", tags=["documents"], default_response_class=Response)
Values = Annotated[list[str], Query(max_length=100)]
Index = Annotated[int, Path(ge=0, le=1_000_000_000, description="The place of the passage in its document, from 0.")]


@router.get("", summary="List documents", responses=DOCUMENTS)
async def documents(
    exchange: Reader,
    offset: Offset = 0,
    limit: Limit = 50,
    patient: Values = [],  # noqa: B006
    type: Values = [],  # noqa: B006
    source: Values = [],  # noqa: B006
    date: Values = [],  # noqa: B006
    aspect: Values = [],  # noqa: B006
) -> Response:
    """Documents in the order in which they were added, without their texts; of an aspect, those with such a section."""
    given = {"patient": patient, "type": type, "source": source, "date": date, "aspect": aspect}
    filters = {name: values for name, values in given.items() if values}
    exchange.record.filters = filters

    def listed(library: Library, masking: Masking) -> dict[str, Any]:
        ids = library.ids(filters)
        shown = []
        for id in ids[offset : offset + limit]:
            document = library.index.document(id)
            if document is not None:
                title = masking.short(document.title, document.metadata)
                shown.append({"id": id, "title": title, "metadata": masking.metadata(document.metadata)})
        return {"documents": shown, "total": len(ids)}

    found = await exchange.light(listed)
    exchange.record.documents = [one["id"] for one in found["documents"]]
    return reply(found)


@router.get("/{id:path}/passages/{index}", summary="Show a passage", responses=PASSAGE)
async def passage(id: Id, index: Index, exchange: Reader) -> Response:
    """A passage of a document, for those who read on from a hit."""
    exchange.record.documents, exchange.record.more = [id], {"passage": index}

    def one(library: Library, masking: Masking) -> dict[str, Any]:
        return masking.piece(_passage(library.passage(id, index)))

    return reply(await exchange.light(one))


@router.post("/{id:path}/scores", summary="Score the sentences of a document", responses=SCORES)
async def scores(id: Id, body: ScoresBody, exchange: Reader) -> Response:
    """How much each sentence has to do with the entity, the aspect, and both."""
    exchange.check(query=body.query, entity=body.entity, aspect=body.aspect)
    exchange.record.query, exchange.record.documents = body.told, [id]

    def scored(library: Library, masking: Masking) -> dict[str, Any]:
        curve = library.scores(body.asked, id, by="best")
        found = curve.as_json()
        for one in (found["answer"], *found["sentences"]):
            del one["text"]  # whoever draws the curve has the document
        for one in found["headings"]:
            one["heading"] = masking.short(one["heading"], curve.document.metadata)
        return found

    return reply(await exchange.heavy(scored))


@router.get("/{id:path}", summary="Show a document", responses=DOCUMENT)
async def document(id: Id, exchange: Reader) -> Response:
    """A document: text, sections, passages, sentences and mentions, all as ranges of characters of the text."""
    exchange.record.documents = [id]

    def opened(library: Library, masking: Masking) -> dict[str, Any]:
        whole = library.document(id)
        return _document(whole, library.index.passages_in(whole.id), masking)

    return reply(await exchange.light(opened))


def _document(document: Document, passages: Sequence[Stored], masking: Masking) -> dict[str, Any]:
    text = masking.text(document)
    mentions = [_mention(one, document) for stored in passages for one in stored.entry.mentions]
    return {
        "id": document.id,
        "title": masking.short(document.title, document.metadata),
        "metadata": masking.metadata(document.metadata),
        "text": text,
        "sections": [
            {
                "begin": section.span.begin, "end": section.span.end, "level": section.heading.count(" | ") + 1,
                "heading": masking.short(section.heading, document.metadata),
            }
            for section in sections(document)
            if section.heading
        ],
        "passages": [
            {
                "index": one.index, "begin": one.span.begin, "end": one.span.end,
                "heading": masking.short(one.heading or "", document.metadata),
            }
            for one in (stored.entry.passage for stored in passages)
        ],
        "sentences": [list(span) for stored in passages for span in stored.entry.passage.sentences],
        "mentions": masking.mentions(mentions, text),
    }  # fmt: skip


def _mention(mention: Mention, document: Document) -> dict[str, Any]:
    return mention_as_json(mention, document[mention.span])


def _passage(stored: Stored) -> dict[str, Any]:
    entry, span = stored.entry, stored.entry.passage.span
    return {
        "document": entry.passage.document,
        "index": entry.passage.index,
        "passages": stored.passages,
        "begin": span.begin,
        "end": span.end,
        "text": entry.text,
        "headings": entry.passage.heading.split(" | ") if entry.passage.heading else [],
        "aspect": entry.aspect,
        "mentions": [
            mention_as_json(one, entry.text[one.span.begin - span.begin : one.span.end - span.begin])
            for one in entry.mentions
        ],
    }

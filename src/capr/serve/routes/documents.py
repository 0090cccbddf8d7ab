"""`documents`: the list, one document with everything known about it, a passage, and the scores of its sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import AfterValidator
from starlette.responses import Response

from capr.documents import Document
from capr.index import StoredPassage
from capr.search import Library
from capr.search.json_records import mention_as_json
from capr.segment import sections
from capr.serve.api_route import ApiRoute
from capr.serve.masking import Masking
from capr.serve.request_bodies import Id, Limit, Offset, ScoresBody, check_filters
from capr.serve.request_context import Reader, reply
from capr.serve.responses import DOCUMENT, DOCUMENTS, PASSAGE, SCORES

router = APIRouter(prefix="/documents", tags=["documents"], default_response_class=Response, route_class=ApiRoute)
Values = Annotated[list[str], Query(max_length=100)]
Dates = Annotated[Values, AfterValidator(lambda dates: check_filters({"date": dates})["date"])]
Index = Annotated[int, Path(ge=0, le=1_000_000_000, description="The index of the passage in its document, from 0.")]


@router.get("", summary="List documents", responses=DOCUMENTS)
async def documents(
    context: Reader,
    offset: Offset = 0,
    limit: Limit = 50,
    patient: Values = [],  # noqa: B006
    type: Values = [],  # noqa: B006
    source: Values = [],  # noqa: B006
    date: Dates = [],  # noqa: B006
    aspect: Values = [],  # noqa: B006
) -> Response:
    """List documents without their texts, in the order in which they were added.

    With `aspect`, only documents that have a section about it.
    """
    values = {"patient": patient, "type": type, "source": source, "date": date, "aspect": aspect}
    filters = {name: alternatives for name, alternatives in values.items() if alternatives}
    context.record.filters = filters

    def list_documents(library: Library, masking: Masking) -> dict[str, Any]:
        ids = library.ids(filters)
        rows = []
        for id in ids[offset : offset + limit]:
            document = library.index.document(id)
            if document is not None:
                title = masking.short_text(document.title, document.metadata)
                rows.append({"id": id, "title": title, "metadata": masking.metadata(document.metadata)})
        return {"documents": rows, "total": len(ids)}

    page = await context.run_light(list_documents)
    context.record.documents = [row["id"] for row in page["documents"]]
    return reply(page)


@router.get("/{id:path}/passages/{index}", summary="Show a passage", responses=PASSAGE)
async def passage(id: Id, index: Index, context: Reader) -> Response:
    """Show a passage of a document, to read on from a hit."""
    context.record.documents, context.record.more = [id], {"passage": index}

    def read(library: Library, masking: Masking) -> dict[str, Any]:
        return masking.excerpt(_passage(library.passage(id, index)))

    return reply(await context.run_light(read))


@router.post("/{id:path}/scores", summary="Score the sentences of a document", responses=SCORES)
async def scores(id: Id, body: ScoresBody, context: Reader) -> Response:
    """Score each sentence of a document for the entity, the aspect and both."""
    context.record.query, context.record.documents = body.parts, [id]

    def score(library: Library, masking: Masking) -> dict[str, Any]:
        curve = library.scores(body.search_query, id, by="best")
        record = curve.as_json()
        for span in (record["answer"], *record["sentences"]):
            del span["text"]  # a client that draws the curve has the document
        for heading in record["headings"]:
            heading["heading"] = masking.short_text(heading["heading"], curve.document.metadata)
        return record

    return reply(await context.run_heavy(score))


@router.get("/{id:path}", summary="Show a document", responses=DOCUMENT)
async def document(id: Id, context: Reader) -> Response:
    """Show a document: text, sections, passages, sentences and mentions, all as spans of the text."""
    context.record.documents = [id]

    def read(library: Library, masking: Masking) -> dict[str, Any]:
        document = library.document(id)
        return _document(document, library.index.passages_in(document.id), masking)

    return reply(await context.run_light(read))


def _document(document: Document, passages: Sequence[StoredPassage], masking: Masking) -> dict[str, Any]:
    def mask(heading: str) -> str:
        return masking.short_text(heading, document.metadata)

    text = masking.text(document)
    mentions = [
        mention_as_json(mention, document[mention.span]) for stored in passages for mention in stored.entry.mentions
    ]
    return {
        "id": document.id,
        "title": mask(document.title),
        "metadata": masking.metadata(document.metadata),
        "text": text,
        "sections": [
            {
                "begin": section.span.begin,
                "end": section.span.end,
                "level": section.heading.count(" | ") + 1,
                "heading": mask(section.heading),
            }
            for section in sections(document)
            if section.heading
        ],
        "passages": [
            {
                "index": passage.index,
                "begin": passage.span.begin,
                "end": passage.span.end,
                "heading": mask(passage.heading or ""),
            }
            for passage in (stored.entry.passage for stored in passages)
        ],
        "sentences": [list(span) for stored in passages for span in stored.entry.passage.sentences],
        "mentions": masking.mentions(mentions, text),
    }


def _passage(stored: StoredPassage) -> dict[str, Any]:
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
            mention_as_json(mention, entry.text[mention.span.begin - span.begin : mention.span.end - span.begin])
            for mention in entry.mentions
        ],
    }

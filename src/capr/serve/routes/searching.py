"""`search`, `export` and `ask`."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from capr.search import Library
from capr.serve.api_route import ApiRoute
from capr.serve.masking import Masking
from capr.serve.problems import hide_folders
from capr.serve.request_bodies import AskBody, ExportBody, ExportFormat, SearchBody
from capr.serve.request_context import Reader, RequestContext, reply
from capr.serve.responses import ANSWERS, FILE, RESULTS

router = APIRouter(tags=["searching"], default_response_class=Response, route_class=ApiRoute)
COLUMNS = (
    "rank",
    "document",
    "begin",
    "end",
    "patient",
    "date",
    "type",
    "title",
    "heading",
    "score",
    "text",
    "citation",
)
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet computes a cell that begins with one of these


@router.post("/search", summary="Find passages", responses=RESULTS)
async def search(body: SearchBody, context: Reader) -> Response:
    """Find the passages that answer a question, or that are about an aspect of an entity."""
    return reply(await _search(body, context))


@router.post("/export", summary="Export passages to a file", responses=FILE)
async def export(body: ExportBody, context: Reader) -> Response:
    """Export the hits of a search as CSV or JSON, each with a citation."""
    results = await _search(body, context)
    hits = [{**hit, "citation": citation(hit)} for hit in _flat(results["hits"])]
    headers = {"Content-Disposition": f'attachment; filename="capr-hits.{body.format}"'}
    if body.format is ExportFormat.json:
        content = json.dumps({**results, "hits": hits}, ensure_ascii=False, indent=1)
        return Response(content.encode("utf-8", "replace"), headers=headers, media_type="application/json")
    return Response(_csv(hits).encode("utf-8-sig", "replace"), headers=headers, media_type="text/csv; charset=utf-8")


@router.post("/ask", summary="Answer a question", responses=ANSWERS)
async def ask(body: AskBody, context: Reader) -> Response:
    """Find the exact words that answer a question, or report that the documents do not answer it."""
    context.record.query = {"question": body.question}
    context.record.filters = {**body.filters, **({"document": body.document} if body.document else {})}

    def read(library: Library, masking: Masking) -> dict[str, Any]:
        answers = library.ask(
            body.question,
            body.document,
            filters=body.filters,
            k=body.top or body.k,
            threshold=body.threshold,
            passages=body.passages,
        )
        return masking.answers(answers.as_json())

    answers = await context.run_heavy(read)
    answers["notices"] = [hide_folders(notice) for notice in answers["notices"]]
    locations = [location for answer in answers["answers"] for location in answer["places"]]
    context.record.documents = _ids([*answers["answers"], *locations])
    return reply(answers)


async def _search(body: SearchBody, context: RequestContext) -> dict[str, Any]:
    context.record.query = body.parts
    context.record.filters = {**body.filters, **({"without": body.without} if body.without else {})}
    started = time.perf_counter()

    def find(library: Library, masking: Masking) -> dict[str, Any]:
        results = library.search(
            body.search_query,
            body.effective_k,
            filters=body.all_filters,
            mode=body.mode,
            fusion=body.fusion,
            rerank=body.rerank,
            group=body.group,
            neighbours=body.neighbours,
        )
        return masking.results(results.as_json())

    results = await context.run_heavy(find)
    context.record.documents = _ids(_flat(results["hits"]))
    if not body.explain:
        for hit in _flat(results["hits"]):
            del hit["stages"]
    results["notices"] = [hide_folders(notice) for notice in results["notices"]]
    return {"took": round(time.perf_counter() - started, 4), **results}


def citation(hit: Mapping[str, Any]) -> str:
    """Return a one-line citation of a passage: title, type, patient, date, document id and offsets."""
    metadata = hit["metadata"]
    source = (hit["title"], metadata.get("type"), metadata.get("patient"), metadata.get("date"))
    passage = f"{hit['document']} [{hit['begin']}, {hit['end']})"
    return ", ".join(str(part) for part in (*source, passage) if part)


def _flat(hits: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield all hits, the further hits of groups included."""
    for hit in hits:
        yield hit
        yield from hit.get("others", ())


def _ids(records: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(str(record["document"]) for record in records))


def _csv(hits: Iterable[Mapping[str, Any]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    for rank, hit in enumerate(hits, 1):
        metadata = hit["metadata"]
        values = {
            **{name: metadata.get(name, "") for name in ("patient", "date", "type")},
            **hit,
            "rank": rank,
            "heading": " | ".join(hit["headings"]),
        }
        writer.writerow([_cell(values[column]) for column in COLUMNS])
    return file.getvalue()


def _cell(value: Any) -> Any:
    """Return a value that a spreadsheet shows as text instead of computing it."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value

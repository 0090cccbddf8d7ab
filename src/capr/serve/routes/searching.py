"""`search`, `ask` and `export`: what is looked for, and where it stands."""

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
from capr.serve.bodies import AskBody, ExportBody, Form, SearchBody
from capr.serve.exchange import Exchange, Reader, reply
from capr.serve.masking import Masking
from capr.serve.problems import shown
from capr.serve.replies import ANSWERS, FILE, RESULTS

router = APIRouter(tags=["searching"], default_response_class=Response)
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
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a cell that begins so is computed by a spreadsheet


@router.post("/search", summary="Find passages", responses=RESULTS)
async def search(body: SearchBody, exchange: Reader) -> Response:
    """The passages that answer a question, or that are about an aspect of an entity."""
    return reply(await _found(body, exchange))


@router.post("/export", summary="Find passages, as a file", responses=FILE)
async def export(body: ExportBody, exchange: Reader) -> Response:
    """The hits of a search as CSV or JSON, each with a citation."""
    found = await _found(body, exchange)
    hits = [{**hit, "citation": citation(hit)} for hit in _flat(found["hits"])]
    headers = {"Content-Disposition": f'attachment; filename="capr-hits.{body.format}"'}
    if body.format is Form.json:
        content = json.dumps({**found, "hits": hits}, ensure_ascii=False, indent=1)
        return Response(content.encode("utf-8", "replace"), headers=headers, media_type="application/json")
    return Response(_csv(hits).encode("utf-8-sig", "replace"), headers=headers, media_type="text/csv; charset=utf-8")


@router.post("/ask", summary="Read the answer to a question", responses=ANSWERS)
async def ask(body: AskBody, exchange: Reader) -> Response:
    """The exact words that answer a question, or that the documents do not say."""
    exchange.check(question=body.question)
    exchange.record.query = {"question": body.question}
    exchange.record.filters = {**body.filters, **({"document": body.document} if body.document else {})}

    def read(library: Library, masking: Masking) -> dict[str, Any]:
        answers = library.ask(
            body.question, body.document, filters=body.filters, top=body.top, threshold=body.threshold,
            passages=body.passages,
        )  # fmt: skip
        return masking.answers(answers.as_json())

    found = await exchange.heavy(read)
    found["notices"] = [shown(notice) for notice in found["notices"]]
    exchange.record.documents = _ids([*found["answers"], *(p for one in found["answers"] for p in one["places"])])
    return reply(found)


async def _found(body: SearchBody, exchange: Exchange) -> dict[str, Any]:
    exchange.check(body.k, query=body.query, entity=body.entity, aspect=body.aspect)
    exchange.record.query = body.told
    exchange.record.filters = {**body.filters, **({"without": body.without} if body.without else {})}
    begun = time.perf_counter()

    def find(library: Library, masking: Masking) -> dict[str, Any]:
        results = library.search(
            body.asked, body.k, filters=body.narrowed, mode=body.mode, fusion=body.fusion, rerank=body.rerank,
            group=body.group, neighbours=body.neighbours,
        )  # fmt: skip
        return masking.results(results.as_json())

    found = await exchange.heavy(find)
    exchange.record.documents = _ids(_flat(found["hits"]))
    if not body.explain:
        for hit in _flat(found["hits"]):
            del hit["stages"]
    found["notices"] = [shown(notice) for notice in found["notices"]]
    return {"took": round(time.perf_counter() - begun, 4), **found}


def citation(hit: Mapping[str, Any]) -> str:
    """Where a passage stands, in one line: title, type, patient, date, id and characters."""
    metadata = hit["metadata"]
    told = (hit["title"], metadata.get("type"), metadata.get("patient"), metadata.get("date"))
    place = f"{hit['document']} [{hit['begin']}, {hit['end']})"
    return ", ".join(str(part) for part in (*told, place) if part)


def _flat(hits: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """All hits, those of groups included."""
    for hit in hits:
        yield hit
        yield from hit.get("others", ())


def _ids(found: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(str(one["document"]) for one in found))


def _csv(hits: Iterable[Mapping[str, Any]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    for rank, hit in enumerate(hits, 1):
        metadata = hit["metadata"]
        values = {
            **{name: metadata.get(name, "") for name in ("patient", "date", "type")},
            **hit, "rank": rank, "heading": " | ".join(hit["headings"]),
        }  # fmt: skip
        writer.writerow([_cell(values[column]) for column in COLUMNS])
    return file.getvalue()


def _cell(value: Any) -> Any:
    """A value that a spreadsheet shows and does not compute."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value

"""Adding and removing documents, and how far that is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import PurePosixPath
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import ValidationError
from starlette.datastructures import UploadFile
from starlette.responses import Response, StreamingResponse

from capr.documents import NotThereError
from capr.documents.files import SIDECAR
from capr.search import Library
from capr.serve.bodies import DocumentsBody, Id
from capr.serve.desk import Job
from capr.serve.exchange import Exchange, Writer, reply
from capr.serve.jobs import DOCUMENTS, Jobs
from capr.serve.masking import Masking
from capr.serve.problems import ProblemError, invalid
from capr.serve.replies import EVENTS, JOB, JOB_MADE, REMOVED, UPLOAD

router = APIRouter(tags=["writing"], default_response_class=Response)
JobId = Annotated[str, Path(max_length=64)]
FILES = 1000  # in one request
LONGEST = 150  # bytes of the name of a file; the end is kept, which tells its format
EVERY = 0.3  # seconds between two events


@router.post("/documents", summary="Add documents", status_code=202, responses=JOB_MADE, openapi_extra=UPLOAD)
async def add(request: Request, exchange: Writer) -> Response:
    """Adds documents in the background: as JSON, or files of any format that `capr index` reads."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    files: dict[str, bytes] = {}
    documents: list[dict[str, Any]] = []
    if kind == "multipart/form-data":
        files, replace = await _files(request)
    elif kind == "application/json":
        try:
            body = await asyncio.to_thread(DocumentsBody.model_validate_json, await request.body())
        except ValidationError as error:
            raise invalid([{**one, "loc": ("body", *one["loc"])} for one in error.errors()]) from error
        documents, replace = [one.model_dump() for one in body.documents], body.replace
    else:
        fact = f"the request is {kind or 'nothing that it names'}"
        raise ProblemError(415, fact, "send application/json, or multipart/form-data with files")
    jobs, who = _jobs(exchange), exchange.caller.id
    job = await exchange.light(lambda *_: jobs.add(who, documents, files, replace))
    exchange.record.asked = [one["id"] for one in documents]  # the job tells which of them it keeps
    exchange.record.more = {"job": job.id, "files": list(files), "replace": replace}
    return reply({"job": job.id}, 202)


@router.delete("/documents/{id:path}", summary="Remove a document", responses=REMOVED)
async def remove(id: Id, exchange: Writer) -> Response:
    """Removes a document for good."""
    exchange.record.documents = [id]

    def removed(library: Library, _: Masking) -> int:
        library.document(id)
        return library.remove(id)

    return reply({"removed": await exchange.light(removed)})


@router.get("/jobs/{id}", summary="How far is a job?", responses=JOB)
async def job(id: JobId, exchange: Writer) -> Response:
    """The documents that are kept so far, and what could not be."""
    return reply((await _job(id, exchange)).as_json())


@router.get("/jobs/{id}/events", summary="Follow a job", responses=EVENTS)
async def events(id: JobId, exchange: Writer) -> Response:
    """The same as server-sent events, whenever something has changed, until it ends."""
    first = await _job(id, exchange)

    async def stream() -> AsyncIterator[str]:
        known, last = first, ""
        while True:
            told = json.dumps(known.as_json(), ensure_ascii=False)
            if told != last:
                yield f"data: {told}\n\n"
                last = told
            if known.ended or exchange.server.stopping.is_set():
                return
            await asyncio.sleep(EVERY)
            known = await _job(id, exchange)

    return StreamingResponse(stream(), media_type="text/event-stream")


async def _files(request: Request) -> tuple[dict[str, bytes], bool]:
    """The files of a form by names that are safe in any folder, and whether they replace others."""
    found: dict[str, bytes] = {}
    async with request.form(max_files=FILES, max_fields=10) as form:
        for _, value in form.multi_items():
            if isinstance(value, UploadFile):
                name = _name(value.filename or "", found)
                found[name] = await value.read()
        said = str(form.get("replace", "false")).lower()
    if said not in ("true", "false"):
        raise invalid([{"loc": ("body", "replace"), "msg": "it has to be true or false"}])
    if not found:
        raise invalid([{"loc": ("body", "files"), "msg": "there is no file in the form"}])
    return found, said == "true"


def _name(given: str, known: dict[str, bytes]) -> str:
    name = PurePosixPath(given.replace("\\", "/")).name
    name = "".join(letter if letter.isalnum() or letter in "._- " else "_" for letter in name).strip(" .")
    name = name.encode()[-LONGEST:].decode(errors="ignore") or f"file{len(known) + 1}"
    while name in known or name in (DOCUMENTS, *SIDECAR):
        name = f"{len(known) + 1}-{name}"
    return name


def _jobs(exchange: Exchange) -> Jobs:
    if exchange.server.jobs is None:
        raise ProblemError(503, "the server is just starting", "try again in a moment", 1)
    return exchange.server.jobs


async def _job(id: str, exchange: Exchange) -> Job:
    """A job of whoever asks; an admin may look at all."""
    jobs, caller = _jobs(exchange), exchange.caller
    exchange.record.more = {"job": id}
    found = await exchange.light(lambda *_: jobs.job(id))
    if found.who != caller.id and not caller.may("admin"):
        raise NotThereError(f"there is no job {id!r}. Fix: check the id.")
    return found

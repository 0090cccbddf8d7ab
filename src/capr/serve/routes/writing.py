"""`documents` and `jobs`: adding and removing documents, and the progress of jobs."""

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

from capr.documents import NotFoundError
from capr.documents.files import SIDECAR
from capr.search import Library
from capr.serve.api_route import ApiRoute
from capr.serve.database import Job
from capr.serve.jobs import DOCUMENTS, Jobs
from capr.serve.masking import Masking
from capr.serve.problems import ProblemError, invalid
from capr.serve.request_bodies import DocumentsBody, Id, with_known_fields
from capr.serve.request_context import RequestContext, Writer, reply
from capr.serve.responses import EVENTS, JOB, JOB_MADE, REMOVED, UPLOAD

router = APIRouter(tags=["writing"], default_response_class=Response, route_class=ApiRoute)
JobId = Annotated[str, Path(max_length=64)]
FILES = 1000  # of one request
LONGEST_NAME = 150  # bytes of a file name; a longer one loses its beginning, because its end shows the format
INTERVAL = 0.3  # seconds between two looks at a job


@router.post("/documents", summary="Add documents", status_code=202, responses=JOB_MADE, openapi_extra=UPLOAD)
async def add(request: Request, context: Writer) -> Response:
    """Add documents in the background, as JSON or as files of any format that `capr index` reads."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    files: dict[str, bytes] = {}
    documents: list[dict[str, Any]] = []
    if kind == "multipart/form-data":
        files, replace = await _files(request)
    elif kind == "application/json":
        try:
            body = await asyncio.to_thread(DocumentsBody.model_validate_json, await request.body())
        except ValidationError as error:
            problems = [{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors()]
            raise invalid(with_known_fields(problems, DocumentsBody)) from error
        documents, replace = [document.model_dump() for document in body.documents], body.replace
    else:
        fact = f"the content type of the request is {kind or 'missing'}"
        raise ProblemError(415, fact, "send application/json, or multipart/form-data with files")
    jobs, who = _jobs(context), context.caller.id
    job = await context.run_light(lambda *_: jobs.add(who, documents, files, replace))
    context.record.requested = [document["id"] for document in documents]  # the job records which of them it adds
    context.record.more = {"job": job.id, "files": list(files), "replace": replace}
    return reply({"job": job.id}, 202)


@router.delete("/documents/{id:path}", summary="Remove a document", responses=REMOVED)
async def remove(id: Id, context: Writer) -> Response:
    """Remove a document permanently."""
    context.record.documents = [id]

    def remove_document(library: Library, _: Masking) -> int:
        library.document(id)  # raises an error if it does not exist
        return library.remove(id)

    return reply({"removed": await context.run_light(remove_document)})


@router.get("/jobs/{id}", summary="Show the progress of a job", responses=JOB)
async def job(id: JobId, context: Writer) -> Response:
    """Show the number of documents added so far, and the problems."""
    return reply((await _job(id, context)).as_json())


@router.get("/jobs/{id}/events", summary="Follow a job", responses=EVENTS)
async def events(id: JobId, context: Writer) -> Response:
    """Send the progress as server-sent events whenever it changes, until the job ends."""
    first_state = await _job(id, context)

    async def stream() -> AsyncIterator[str]:
        job, last_event = first_state, ""
        while True:
            event = json.dumps(job.as_json(), ensure_ascii=False)
            if event != last_event:
                yield f"data: {event}\n\n"
                last_event = event
            if job.ended or context.server.stopping.is_set():
                return
            await asyncio.sleep(INTERVAL)
            job = await _job(id, context)

    return StreamingResponse(stream(), media_type="text/event-stream")


async def _files(request: Request) -> tuple[dict[str, bytes], bool]:
    """Return the files of a form by names that are safe in any folder, and whether they replace others."""
    files: dict[str, bytes] = {}
    async with request.form(max_files=FILES, max_fields=10) as form:
        for _, value in form.multi_items():
            if isinstance(value, UploadFile):
                files[_safe_name(value.filename or "", files)] = await value.read()
        replace = str(form.get("replace", "false")).lower()
    problems = []
    if replace not in ("true", "false"):
        problems.append({"loc": ("body", "replace"), "msg": "must be true or false"})
    if not files:
        problems.append({"loc": ("body", "files"), "msg": "the form has no file"})
    if problems:
        raise invalid(problems)
    return files, replace == "true"


def _safe_name(name: str, files: dict[str, bytes]) -> str:
    name = PurePosixPath(name.replace("\\", "/")).name
    name = "".join(letter if letter.isalnum() or letter in "._- " else "_" for letter in name).strip(" .")
    name = name.encode()[-LONGEST_NAME:].decode(errors="ignore") or f"file{len(files) + 1}"
    while name in files or name in (DOCUMENTS, *SIDECAR):
        name = f"{len(files) + 1}-{name}"
    return name


def _jobs(context: RequestContext) -> Jobs:
    if context.server.jobs is None:
        raise ProblemError(503, "the server is starting", "try again in a moment", 1)
    return context.server.jobs


async def _job(id: str, context: RequestContext) -> Job:
    """Return a job of the caller; an admin may see all jobs."""
    jobs, caller = _jobs(context), context.caller
    context.record.more = {"job": id}
    job = await context.run_light(lambda *_: jobs.job(id))
    if job.who != caller.id and not caller.may("admin"):
        raise NotFoundError(f"there is no job {id!r}. Fix: check the id.")
    return job

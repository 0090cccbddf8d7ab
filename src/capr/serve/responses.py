"""The replies of each route for the OpenAPI document: what they mean, their schema and an example."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from capr.serve import response_models as models
from capr.serve import server_models as server
from capr.serve.problems import MEDIA, NOT_THERE, ProblemError
from capr.serve.request_bodies import DocumentsBody

Responses = dict[int | str, dict[str, Any]]
JSON = "application/json"
CONCEPT = {"system": "MESH", "code": "MESH:D009203", "name": "myocardial infarction"}
MENTION = {
    "begin": 131,
    "end": 133,
    "text": "MI",
    "kind": "disease",
    "concept": CONCEPT,
    "family": True,
    "cues": {"family": {"text": "father", "begin": 120, "end": 126}},
}
SPAN = {"begin": 120, "end": 164, "text": "Father had an MI at 58."}
PASSAGE_SPAN = {"document": "p01-2024-03-18-discharge", **SPAN}
METADATA = {"patient": "p01", "date": "2024-03-18", "type": "Discharge summary"}
HIT = {
    **PASSAGE_SPAN,
    "index": 3,
    "passages": 14,
    "score": 0.93,
    "title": "Discharge summary",
    "headings": ["FAMILY HISTORY"],
    "aspect": "family history",
    "metadata": METADATA,
    "mentions": [MENTION],
    "sentences": [{"begin": 120, "end": 143, "text": "Father had an MI at 58.", "score": 0.8}],
    "highlights": [[134, 136]],
    "stages": {"lexical": {"rank": 1, "score": 8.1}},
}
JOB_EXAMPLE = {
    "job": "5f1d0c8e2a7b9c34",
    "state": "running",
    "created": "2024-03-18T09:30:00Z",
    "made": "2024-03-18T09:30:00Z",
    "done": 256,
    "total": 1000,
    "added": 0,
    "replaced": 0,
    "unchanged": 0,
    "problems": [],
    "more_problems": 0,
}


def json_reply(description: str, model: type[BaseModel], example: dict[str, Any], status: int = 200) -> Responses:
    """Describe a JSON reply."""
    return {status: {"description": description, "model": model, "content": {JSON: {"example": example}}}}


def text_reply(description: str, media: str, example: str) -> Responses:
    """Describe a reply that is not JSON."""
    return {200: {"description": description, "content": {media: {"schema": {"type": "string"}, "example": example}}}}


def _problem(description: str, instance: str, problem: ProblemError) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/ProblemReply"}  # `describe_problems` adds the schema
    return {"description": description, "content": {MEDIA: {"schema": schema, "example": problem.as_json(instance)}}}


def describe_problems(document: dict[str, Any]) -> None:
    """Add the schema of problem documents to an OpenAPI document.

    FastAPI would put a `model` under application/json, and problems have a media type of their own.
    """
    schema = server.ProblemReply.model_json_schema()
    schemas = document["components"]["schemas"]
    schemas.update(schema.pop("$defs"))
    schema["properties"]["errors"]["items"] = {"$ref": "#/components/schemas/FieldProblem"}
    schemas["ProblemReply"] = schema


EXAMPLES = {
    401: (
        "The token is missing or not valid.",
        "/api/search",
        "the request has no token",
        "send yours as Authorization: Bearer TOKEN, or ask the administrator for one",
    ),
    403: (
        "The role of the token does not allow this, or a page of another site sent the request.",
        "/api/documents",
        "this needs the role writer, and the token of 'ward 3' has the role reader",
        "use a token of a writer (capr token create --role writer)",
    ),
    404: ("It does not exist, or the token may not see it.", "/api/documents/p99", *NOT_THERE),
    408: (
        "The request arrived too slowly.",
        "/api/documents",
        "the request did not arrive within 30 seconds",
        "send it faster, or in several requests",
    ),
    409: (
        "Another writer is changing the library, or the token has reached its limit of judgements.",
        "/api/feedback",
        "this token already has 100,000 judgements, and no more are stored",
        "withdraw some (answers: null)",
    ),
    413: (
        "The request is too large.",
        "/api/search",
        "the request has more than 1,000,000 bytes",
        "send less, or in several requests",
    ),
    422: (
        "The request is not valid. `errors` lists every problem.",
        "/api/ask",
        "there is no question",
        "write one, in plain words",
    ),
    429: (
        "Too many requests. Retry-After says how long to wait.",
        "/api/search",
        "there were more than 50 requests a second for too long",
        "wait as long as Retry-After says, and send requests less often",
    ),
    503: (
        "The server is busy, or a model is missing. Retry-After says when to try again.",
        "/api/search",
        "the server is busy: 64 requests are already waiting",
        "try again in a moment",
    ),
}
PROBLEMS: Responses = {
    status: _problem(description, instance, ProblemError(status, fact, fix))
    for status, (description, instance, fact, fix) in EXAMPLES.items()
}

SEARCH_EXAMPLE = {
    "took": 0.021,
    "mode": "hybrid",
    "expanded": {"MI": ["heart attack"]},
    "notices": [],
    "hits": [HIT],
}
RESULTS = json_reply("The hits, best first, and how the query was understood.", models.SearchReply, SEARCH_EXAMPLE)
CITATION = "Discharge summary, Discharge summary, p01, 2024-03-18, p01-2024-03-18-discharge [120, 164)"
ROWS = (
    "rank,document,begin,end,patient,date,type,title,heading,score,text,citation\r\n"
    "1,p01-2024-03-18-discharge,120,164,p01,2024-03-18,Discharge summary,Discharge summary,FAMILY HISTORY,0.93,"
    f'Father had an MI at 58.,"{CITATION}"\r\n'
)
FILE = json_reply("The file.", models.ExportReply, {**SEARCH_EXAMPLE, "hits": [{**HIT, "citation": CITATION}]})
FILE[200]["content"] |= text_reply("", "text/csv", ROWS)[200]["content"]
ANSWERS = json_reply(
    "The answers, best first. Those below the threshold are guesses; `answered` says whether any reaches it.",
    models.AskReply,
    {
        "question": "What did her father have?",
        "answered": True,
        "found": True,
        "threshold": 0.5,
        "reader": "capr-reader",
        "documents": 1,
        "passages": 14,
        "paragraphs": 14,
        "took": 0.4,
        "notices": [],
        "answers": [
            {
                **PASSAGE_SPAN,
                "begin": 131,
                "end": 133,
                "text": "MI",
                "confidence": 0.92,
                "headings": [],
                "title": "",
                "metadata": METADATA,
                "context": {},
                "sentence": SPAN,
                "passage": SPAN,
                "paragraph": SPAN,
                "places": [],
            }
        ],
    },
)
DOCUMENTS = json_reply(
    "Documents without their texts, and the number of all documents.",
    models.DocumentsReply,
    {"documents": [{"id": "p01-2024-03-18-discharge", "title": "Discharge summary", "metadata": METADATA}], "total": 1},
)
DOCUMENT = json_reply(
    "The document.",
    models.DocumentReply,
    {
        "id": "n1",
        "title": "",
        "metadata": METADATA,
        "text": "PLAN: Start aspirin.",
        "sections": [{"begin": 0, "end": 20, "heading": "PLAN", "level": 1}],
        "passages": [{"index": 0, "begin": 0, "end": 20, "heading": "PLAN"}],
        "sentences": [[0, 20]],
        "mentions": [],
    },
)
PASSAGE = json_reply(
    "The passage.",
    models.PassageReply,
    {
        **PASSAGE_SPAN,
        "index": 3,
        "passages": 14,
        "headings": ["FAMILY HISTORY"],
        "aspect": "family history",
        "mentions": [MENTION],
    },
)
SCORES = json_reply(
    "The scores of all sentences.",
    models.ScoresReply,
    {
        "document": "n1",
        "entity": "aspirin",
        "aspect": "treatment",
        "by": "discourse",
        "answer": {"begin": 0, "end": 20},
        "headings": [{"begin": 0, "heading": "PLAN"}],
        "sentences": [{"begin": 0, "end": 20, "entity": 0.8, "aspect": 0.6, "both": 0.7}],
    },
)
FACETS = json_reply(
    "The number of documents for each value; `more` is the number of values that are not listed.",
    models.FacetsReply,
    {
        "documents": 12,
        "patient": [{"value": "p01", "count": 3}],
        "type": [{"value": "Letter", "count": 9}],
        "source": [],
        "aspect": [{"value": "plan", "count": 8}],
        "more": {"patient": 0, "type": 0, "source": 0, "aspect": 12},
        "dates": [{"month": "2024-03", "count": 2}],
        "undated": 1,
    },
)
PATIENTS = json_reply(
    "Patients by name, and the number of all patients.",
    models.PatientsReply,
    {"patients": [{"patient": "p01", "documents": 3, "first": "2024-03-18", "last": "2024-10-02"}], "total": 1},
)
SUGGESTIONS = json_reply(
    "Completions, best first.",
    models.SuggestReply,
    {"suggestions": [{"name": "heart attack", "kind": "disease", "concept": CONCEPT}]},
)
ASPECTS = json_reply(
    "Completions, the most frequent first.",
    models.AspectsReply,
    {"aspects": [{"name": "family history", "heading": "Family history", "documents": 31}]},
)
STATS = json_reply(
    "The size of the library.",
    server.StatsReply,
    {
        "documents": 102,
        "patients": 30,
        "passages": 1234,
        "characters": 260_000,
        "mentions": 7300,
        "vectors": 1234,
        "encoder": {"name": "capr-encoder", "digest": "5f1d0c8e2a7b9c34", "dimensions": 384},
        "sentences": 0,
        "passages_with_sentences": 0,
        "piece_vectors": 0,
        "discourse": None,
        "disk": {"documents": 1_200_000},
        "fields": {"patient": 70},
    },
)
ME = json_reply(
    "The caller, and what this server can do.",
    server.MeReply,
    {
        "name": "ward 3",
        "role": "reader",
        "restrictions": {"patient": ["p01"]},
        "open": False,
        "ready": True,
        "features": {"ask": True, "scores": "encoder", "deidentified": False},
        "limits": {"k": 100, "query": 2000},
    },
)
SAVED_EXAMPLE = {
    "id": "9c34",
    "name": "Vancomycin",
    "address": "q=vancomycin",
    "created": "2024-03-18T09:30:00Z",
    "made": "2024-03-18T09:30:00Z",
}
SAVED = json_reply("Saved searches, the latest first.", server.SavedSearchesReply, {"saved": [SAVED_EXAMPLE]})
SAVED_ONE = json_reply("The saved search.", server.SavedSearch, SAVED_EXAMPLE, 201)
NOTHING: Responses = {204: {"description": "Removed."}}
JUDGEMENT = {"document": "p01-2024-03-18-discharge", "begin": 120, "end": 164, "answers": True}
JUDGEMENTS = json_reply("The judgements, the latest first.", server.JudgementsReply, {"judgements": [JUDGEMENT]})
OLD_JUDGEMENTS = json_reply("The judgements, the latest first.", server.OldJudgementsReply, {"given": [JUDGEMENT]})
JUDGED = json_reply("Saved.", server.JudgedReply, {"answers": True}, 201)
LINES = (
    '{"text": {"document": "n1", "title": "", "heading": "PLAN", "text": "PLAN: Start aspirin.", '
    '"entities": ["aspirin dose"], "aspects": ["feedback"]}}\n'
    '{"draw": {"passage": 0, "entity": "aspirin dose", "aspect": "feedback", "questions": ["aspirin dose"], '
    '"negatives": []}}\n'
)
PAIRS = text_reply("A file for `capr train`: JSON lines in gzip. The example is unpacked.", "application/gzip", LINES)
PAIRS[200]["content"]["application/gzip"]["schema"] = {"type": "string", "format": "binary"}
JOB_MADE = json_reply("The job that adds the documents.", server.JobId, {"job": "5f1d0c8e2a7b9c34"}, 202)
JOB = json_reply("The progress of the job.", server.JobReply, JOB_EXAMPLE)
EVENTS = text_reply(
    "Server-sent events; the data of each is the progress of the job.",
    "text/event-stream",
    'data: {"job": "5f1d0c8e2a7b9c34", "state": "done"}',
)
REMOVED = json_reply("The number of documents removed.", server.RemovedReply, {"removed": 1})
ALIVE = json_reply("The process is alive.", server.StatusReply, {"status": "alive"})
READY: Responses = {
    **json_reply("The server is ready.", server.StatusReply, {"status": "ready"}),
    503: PROBLEMS[503],
}
METRICS: Responses = {
    **text_reply("Metrics in Prometheus' text format.", "text/plain", "capr_workers 1"),
    **{status: PROBLEMS[status] for status in (401, 403, 429)},
}
DOCUMENTS_SCHEMA = DocumentsBody.model_json_schema()
DOCUMENTS_SCHEMA["properties"]["documents"]["items"] = DOCUMENTS_SCHEMA.pop("$defs")["DocumentBody"]
UPLOAD: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {"schema": DOCUMENTS_SCHEMA},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "files": {"type": "array", "items": {"type": "string", "format": "binary"}},
                        "replace": {"type": "boolean"},
                    },
                    "required": ["files"],
                }
            },
        },
    }
}

"""Replies: what each route gives, described by an example, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from capr.serve.bodies import DocumentsBody
from capr.serve.problems import MEDIA, NOT_THERE, ProblemError

Responses = dict[int | str, dict[str, Any]]
JSON = "application/json"
CONCEPT = {"system": "MESH", "code": "MESH:D009203", "name": "myocardial infarction"}
MENTION = {
    "begin": 131, "end": 133, "text": "MI", "kind": "disease", "concept": CONCEPT, "family": True,
    "cues": {"family": {"text": "father", "begin": 120, "end": 126}},
}  # fmt: skip
PLACE = {"document": "p01-2024-03-18-discharge", "begin": 120, "end": 164, "text": "Father had an MI at 58."}
METADATA = {"patient": "p01", "date": "2024-03-18", "type": "Discharge summary"}
HIT = {
    **PLACE, "index": 3, "passages": 14, "score": 0.93, "title": "Discharge summary", "headings": ["FAMILY HISTORY"],
    "aspect": "family history", "metadata": METADATA, "mentions": [MENTION],
    "sentences": [{"begin": 120, "end": 143, "text": "Father had an MI at 58.", "score": 0.8}],
    "highlights": [[134, 136]], "stages": {"lexical": {"rank": 1, "score": 8.1}},
}  # fmt: skip
JOB_EXAMPLE = {
    "job": "5f1d0c8e2a7b9c34", "state": "running", "made": "2024-03-18T09:30:00Z", "done": 256, "total": 1000,
    "added": 0, "replaced": 0, "unchanged": 0, "problems": [], "more_problems": 0,
}  # fmt: skip


def given(told: str, example: Any, status: int = 200, media: str = JSON) -> Responses:
    """A reply with an example."""
    schema = {"type": "object"} if isinstance(example, dict) else {"type": "string"}
    return {status: {"description": told, "content": {media: {"schema": schema, "example": example}}}}


def _problem(told: str, instance: str, problem: ProblemError) -> dict[str, Any]:
    names = ("type", "title", "detail", "fix", "instance")
    schema = {
        "type": "object",
        "properties": {**{name: {"type": "string"} for name in names}, "status": {"type": "integer"}},
        "required": [*names, "status"],
    }
    return {"description": told, "content": {MEDIA: {"schema": schema, "example": problem.as_json(instance)}}}


EXAMPLES = {
    401: ("There is no token, or one that is not valid.",
          "/api/search", "there is no token", "send one as Authorization: Bearer capr_..."),
    403: ("The role of the token is not enough, or a page of another site asks.",
          "/api/documents", "this needs the role writer, and the token of 'ward 3' has the role reader",
          "use a token of a writer (capr token create --role writer)"),
    404: ("There is no such thing, or it may not be seen with this token.", "/api/documents/p99", *NOT_THERE),
    408: ("The request came too slowly.",
          "/api/documents", "the request did not arrive within 30 seconds", "send it faster, or in several requests"),
    409: ("Somebody else is changing the library, or no more feedback of this token is kept.",
          "/api/feedback", "there are 100,000 judgements of this token already, and no more are kept",
          "take some back (answers: null)"),
    413: ("The request is too large.",
          "/api/search", "the request has more than 1,000,000 bytes", "send less, or in several requests"),
    422: ("The request was not understood; all that is wrong is named at once.",
          "/api/ask", "there is no question", "write one, in plain words"),
    429: ("Too many requests; Retry-After says how long to wait.",
          "/api/search", "there were more than 50 requests a second for too long",
          "wait as long as Retry-After says, and ask less often"),
    503: ("Too much to do, or a model is missing; Retry-After says when to try again.",
          "/api/search", "the server is busy: 64 requests are waiting already", "try again in a moment"),
}  # fmt: skip
PROBLEMS: Responses = {
    status: _problem(told, instance, ProblemError(status, fact, fix))
    for status, (told, instance, fact, fix) in EXAMPLES.items()
}

RESULTS = given(
    "The hits, best first, and how the query was understood.",
    {"took": 0.021, "mode": "hybrid", "expanded": {"MI": ["heart attack"]}, "notices": [], "hits": [HIT]},
)
CITATION = "Discharge summary, Discharge summary, p01, 2024-03-18, p01-2024-03-18-discharge [120, 164)"
ROWS = (
    "rank,document,begin,end,patient,date,type,title,heading,score,text,citation\r\n"
    "1,p01-2024-03-18-discharge,120,164,p01,2024-03-18,Discharge summary,Discharge summary,FAMILY HISTORY,0.93,"
    f'Father had an MI at 58.,"{CITATION}"\r\n'
)
FILE = given("The file.", ROWS, media="text/csv")
FILE[200]["content"][JSON] = {
    "schema": {"type": "object"},
    "example": {**RESULTS[200]["content"][JSON]["example"], "hits": [{**HIT, "citation": CITATION}]},
}
ANSWERS = given(
    "The answers, best first, those included that are too unsure to be one; `found` says whether there is one.",
    {
        "question": "What did her father have?", "found": True, "threshold": 0.5, "reader": "capr-reader",
        "documents": 1, "paragraphs": 14, "took": 0.4, "notices": [],
        "answers": [{**PLACE, "begin": 131, "end": 133, "text": "MI", "confidence": 0.92, "headings": [], "title": "",
                     "metadata": METADATA, "context": {}, "sentence": PLACE, "paragraph": PLACE, "places": []}],
    },
)  # fmt: skip
DOCUMENTS = given(
    "Documents without their texts, and how many there are in all.",
    {"documents": [{"id": "p01-2024-03-18-discharge", "title": "Discharge summary", "metadata": METADATA}], "total": 1},
)
DOCUMENT = given(
    "The document.",
    {
        "id": "n1", "title": "", "metadata": METADATA, "text": "PLAN: Start aspirin.",
        "sections": [{"begin": 0, "end": 20, "heading": "PLAN", "level": 1}],
        "passages": [{"index": 0, "begin": 0, "end": 20, "heading": "PLAN"}], "sentences": [[0, 20]], "mentions": [],
    },
)  # fmt: skip
PASSAGE = given(
    "The passage.",
    {**PLACE, "index": 3, "passages": 14, "headings": ["FAMILY HISTORY"], "aspect": "family history",
     "mentions": [MENTION]},
)  # fmt: skip
SCORES = given(
    "The scores of all sentences, and what scored them: a discourse model, the encoder, or words.",
    {
        "document": "n1", "entity": "aspirin", "aspect": "treatment", "by": "discourse",
        "answer": {"begin": 0, "end": 20}, "headings": [{"begin": 0, "heading": "PLAN"}],
        "sentences": [{"begin": 0, "end": 20, "entity": 0.8, "aspect": 0.6, "both": 0.7}],
    },
)  # fmt: skip
FACETS = given(
    "Documents by value; `more` says how many further values there are.",
    {
        "documents": 12, "patient": [{"value": "p01", "count": 3}], "type": [{"value": "Letter", "count": 9}],
        "source": [], "aspect": [{"value": "plan", "count": 8}],
        "more": {"patient": 0, "type": 0, "source": 0, "aspect": 12},
        "dates": [{"month": "2024-03", "count": 2}], "undated": 1,
    },
)  # fmt: skip
PATIENTS = given(
    "Patients in the order of their names, and how many there are in all.",
    {"patients": [{"patient": "p01", "documents": 3, "first": "2024-03-18", "last": "2024-10-02"}], "total": 1},
)
SUGGESTIONS = given(
    "Names that fit, best first.", {"suggestions": [{"name": "heart attack", "kind": "disease", "concept": CONCEPT}]}
)
ASPECTS = given("Aspects.", {"aspects": [{"name": "family history", "heading": "Family history", "documents": 31}]})
STATS = given("Counts.", {"documents": 102, "patients": 12, "passages": 1234, "fields": {"patient": 80}})
ME = given(
    "Who asks, and what this server can do.",
    {"name": "ward 3", "role": "reader", "restrictions": {"patient": ["p01"]}, "open": False, "ready": True,
     "features": {"ask": True, "scores": "encoder", "deidentified": False}, "limits": {"k": 100, "query": 2000}},
)  # fmt: skip
SAVED_EXAMPLE = {
    "id": "9c34", "name": "Vancomycin", "address": "query=vancomycin", "made": "2024-03-18T09:30:00Z"
}  # fmt: skip
SAVED = given("Saved searches.", {"saved": [SAVED_EXAMPLE]})
SAVED_ONE = given("What was saved.", SAVED_EXAMPLE, 201)
NOTHING: Responses = {204: {"description": "It is removed."}}
GIVEN = given(
    "What was said, the latest first.",
    {"given": [{"document": "p01-2024-03-18-discharge", "begin": 120, "end": 164, "answers": True}]},
)
JUDGED = given("It is kept.", {"answers": True}, 201)
LINES = (
    '{"text": {"document": "n1", "title": "", "heading": "PLAN", "text": "PLAN: Start aspirin.", '
    '"entities": ["aspirin dose"], "aspects": ["feedback"]}}\n'
    '{"draw": {"passage": 0, "entity": "aspirin dose", "aspect": "feedback", "questions": ["aspirin dose"], '
    '"negatives": []}}\n'
)
PAIRS = given("A file for capr train: lines of JSON in gzip; the example is unpacked.", LINES, media="application/gzip")
PAIRS[200]["content"]["application/gzip"]["schema"] = {"type": "string", "format": "binary"}
JOB_MADE = given("The job that adds them.", {"job": "5f1d0c8e2a7b9c34"}, 202)
JOB = given("The job.", JOB_EXAMPLE)
EVENTS = given("Events.", 'data: {"job": "5f1d0c8e2a7b9c34", "state": "done"}', media="text/event-stream")
REMOVED = given("How many were removed.", {"removed": 1})
ALIVE = given("It is.", {"status": "alive"})
READY: Responses = {**given("It is.", {"status": "ready"}), 503: PROBLEMS[503]}
METRICS: Responses = {
    **given("Prometheus' text format.", "capr_workers 1", media="text/plain"),
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

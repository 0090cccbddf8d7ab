"""The JSON of replies about the server, its users and its problems; see also `response_models`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from capr.serve.response_models import OLD_NAME, Reply, SpanReply


class ModelIdentity(Reply):
    """The model that made the vectors of a library."""

    name: str
    digest: str
    dimensions: int


class StatsReply(Reply):
    """The size of the library."""

    documents: int
    patients: int
    passages: int
    characters: int
    mentions: int
    vectors: int
    encoder: ModelIdentity | None
    sentences: int
    passages_with_sentences: int
    discourse: ModelIdentity | None
    piece_vectors: int = Field(description="Number of vectors of word pieces, for late interaction.")
    disk: dict[str, int] = Field(description="Bytes on disk, by part of the library.")
    fields: dict[str, int] = Field(description="Number of documents that have each metadata field.")


class Features(Reply):
    """What the server can do."""

    ask: bool
    scores: str = Field(description="The scorer of the sentences of a document: `discourse`, `encoder` or `words`.")
    deidentified: bool


class Limits(Reply):
    """The limits of a request."""

    k: int = Field(description="Maximum number of hits.")
    query: int = Field(description="Maximum number of characters of a query.")


class MeReply(Reply):
    """The caller, and what the server can do for it."""

    name: str
    role: Literal["reader", "writer", "admin"]
    restrictions: dict[str, Any]
    open: bool = Field(description="Whether the server answers callers without a token.")
    ready: bool
    features: Features
    limits: Limits


class SavedSearch(Reply):
    """A saved search."""

    id: str
    name: str
    address: str
    created: str = Field(description="When it was saved, in ISO 8601.")
    made: str = Field(description="Use `created`.", json_schema_extra=OLD_NAME)


class SavedSearchesReply(Reply):
    """All saved searches of the token, the latest first."""

    saved: list[SavedSearch]


class Judgement(SpanReply):
    """Whether a passage answers the query."""

    document: str
    answers: bool


class JudgementsReply(Reply):
    """The judgements of the token for one query, the latest first."""

    judgements: list[Judgement]


class OldJudgementsReply(Reply):
    """The judgements of the token, under the old name of the field."""

    given: list[Judgement]


class JudgedReply(Reply):
    """The judgement as saved; null if it was withdrawn."""

    answers: bool | None


class JobId(Reply):
    """The job that adds the documents."""

    job: str


class JobReply(Reply):
    """The progress of a job."""

    job: str
    state: str = Field(description="`waiting`, `running`, `done`, `failed` or `interrupted`.")
    created: str = Field(description="When it was created, in ISO 8601.")
    made: str = Field(description="Use `created`.", json_schema_extra=OLD_NAME)
    done: int = Field(description="Number of documents read so far.")
    total: int | None = Field(description="Number of documents; null while it is unknown.")
    added: int
    replaced: int
    unchanged: int
    problems: list[str]
    more_problems: int = Field(description="Number of problems that are not listed.")


class RemovedReply(Reply):
    """The number of documents removed."""

    removed: int


class StatusReply(Reply):
    """The status of the server."""

    status: str


class FieldProblem(Reply):
    """A problem with one field of a request."""

    field: str
    problem: str


class ProblemReply(Reply):
    """A problem document (RFC 9457) with a fix."""

    type: str
    title: str
    status: int
    detail: str
    fix: str = Field(description="What the client can do about it.")
    instance: str
    errors: list[FieldProblem] = Field([], description="All problems of the request, by field.")

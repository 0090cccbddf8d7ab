"""Request bodies, with the names that Python and the command line use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, get_args
from urllib.parse import unquote

from fastapi import Path, Query
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import InitErrorDetails, PydanticCustomError

from capr.annotate import Query as SearchQuery
from capr.annotate.context import FLAGS
from capr.documents import CaprError
from capr.index import Filters
from capr.search.asking import LONGEST
from capr.search.fusion import Fusion
from capr.search.passages import Group, Mode
from capr.serve.request_limits import SETTINGS, AtMost

VALUES = 10_000  # values of one filter
PATTERNS = 100  # values with a *, in all filters together; each is compared with every value in the library
QUERY_OR_ENTITY = (
    "the body needs either query, or entity with or without aspect, but not both. "
    "Fix: send query alone, or entity with or without aspect."
)
EMPTY_QUERY = "the query is empty. Fix: write a question or words."
Name = Annotated[str, Field(max_length=200)]
Flag = StrEnum("Flag", {name: name for name in FLAGS})  # type: ignore[misc]
FilterValue = Annotated[str, Field(max_length=1000)] | int | float


def _check_characters(text: str) -> str:
    """Raise ValueError for half a surrogate pair, which no UTF-8 file or index can hold."""
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("the text has half a surrogate pair (\\ud800 to \\udfff). Fix: send whole characters.")
    return text


def check_filters(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Raise ValueError for filters that mean nothing or cost too much."""
    try:
        filters = Filters.of(values)
    except CaprError as error:
        raise ValueError(str(error)) from error
    patterns = sum("*" in value for condition in filters.conditions for value in condition.values)
    if patterns > PATTERNS:
        raise ValueError(f"the filters have {patterns:,} values with a *; at most {PATTERNS} are allowed")
    return values


Text = Annotated[str, AtMost("max_query_length"), AfterValidator(_check_characters)]
Question = Annotated[str, AtMost("max_query_length", LONGEST), AfterValidator(_check_characters)]
FilterValues = Annotated[
    dict[Name, Annotated[list[FilterValue], Field(max_length=VALUES)] | FilterValue],
    Field(
        max_length=50,
        description="A value, or a list of alternatives, for each field. A ! at the end of a field name excludes them.",
    ),
    AfterValidator(check_filters),
]
Id = Annotated[str, Path(description="The id of a document, percent-encoded as a whole."), AfterValidator(unquote)]
Prefix = Annotated[str, Query(max_length=200, description="The beginning of a name.")]
OldPrefix = Annotated[str, Query(alias="typed", max_length=200, deprecated=True, description="Use `prefix`.")]
Offset = Annotated[int, Query(ge=0, le=1_000_000_000, description="Number of items to skip.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="Maximum number of items to return.")]


def _problem(kind: str, message: str, field: tuple[int | str, ...], value: Any) -> InitErrorDetails:
    error = PydanticCustomError(kind, "{message}", {"message": message})  # any string will do
    return InitErrorDetails(type=error, loc=field, input=value)


def with_known_fields(errors: Iterable[Mapping[str, Any]], body: Any) -> list[dict[str, Any]]:
    """Return pydantic's errors of a body; those about unknown fields say in `known` which fields are known there."""
    return [
        {**error, "known": _fields(body, error["loc"][1:-1])} if error["type"] == "extra_forbidden" else {**error}
        for error in errors
    ]


def _fields(body: Any, path: Sequence[int | str]) -> list[str]:
    """Return the fields of a body, or of the body at a path inside it; those marked as deprecated are left out."""
    for name in path:
        if isinstance(name, str):
            annotation = body.model_fields[name].annotation
            body = next((part for part in get_args(annotation) if isinstance(part, type)), annotation)
    return [name for name, field in body.model_fields.items() if not _is_deprecated(field)]


def _is_deprecated(field: FieldInfo) -> bool:
    extra = field.json_schema_extra
    return isinstance(extra, dict) and bool(extra.get("deprecated"))


def examples(*bodies: dict[str, Any]) -> ConfigDict:
    """Return the configuration of a body that rejects unknown fields and has these examples."""
    return ConfigDict(extra="forbid", json_schema_extra={"examples": list(bodies)})


class Body(BaseModel):
    """A body that rejects unknown fields."""

    model_config = ConfigDict(extra="forbid")


class QueryBody(Body):
    """A query: text, or an entity and an aspect."""

    query: Text | None = Field(None, description='A question, or words with operators: "a phrase", -word, field:value.')
    entity: Text | None = Field(None, description="A disease, symptom or drug, instead of `query`.")
    aspect: Text | None = Field(None, description="What you want to know about the entity.")

    @model_validator(mode="wrap")
    @classmethod
    def _check_query(cls, data: Any, validate: ModelWrapValidatorHandler[QueryBody]) -> QueryBody:
        """Report a missing or ambiguous query together with the problems of other fields."""
        problems: list[InitErrorDetails] = []
        texts = [data.get(name) or "" for name in ("query", "entity", "aspect")] if isinstance(data, dict) else []
        if texts and all(isinstance(text, str) for text in texts):
            try:
                SearchQuery(*texts)
            except CaprError:
                if "query" in data and not any(text.strip() for text in texts):
                    problems.append(_problem("no_query", EMPTY_QUERY, ("query",), data))
                else:
                    problems.append(_problem("no_query", QUERY_OR_ENTITY, (), data))
        try:
            body = validate(data)
        except ValidationError as error:
            problems += [_problem(e["type"], e["msg"], e["loc"], e["input"]) for e in error.errors()]
        if problems:
            raise ValidationError.from_exception_data(cls.__name__, problems)
        return body

    @property
    def search_query(self) -> SearchQuery:
        """The query."""
        return SearchQuery(self.query or "", self.entity or "", self.aspect or "")

    @property
    def parts(self) -> dict[str, str]:
        """The parts of the query that are given, for the audit trail and for feedback."""
        texts = {"query": self.query, "entity": self.entity, "aspect": self.aspect}
        return {name: text for name, text in texts.items() if text}


class SearchBody(QueryBody):
    """A search; see `Library.search`."""

    model_config = examples(
        {"query": "Why was spironolactone stopped?", "k": 3, "filters": {"patient": "p01"}},
        {"entity": "asthma", "aspect": "family history", "without": ["negated"], "group": "patient"},
    )
    k: Annotated[int, AtMost("max_k")] = Field(10, ge=1, description="Maximum number of hits.")
    filters: FilterValues = Field({}, description="Conditions that every hit matches.")
    without: list[Flag] = Field(
        [], max_length=5, description="Exclude passages that mention the entity only in these contexts."
    )
    mode: Mode = Field(
        Mode.hybrid, description="Search by words (`lexical`), by meaning (`dense`), by both, or by sentences (`cdv`)."
    )
    fusion: Fusion = Field(Fusion.scores, description="How `hybrid` combines words and meaning.")
    rerank: bool | None = Field(
        None, description="Whether the ranker reorders the best passages. By default, only in `hybrid` mode."
    )
    group: Group | None = Field(None, description="Return one hit per document or patient.")
    neighbours: int = Field(
        0, ge=0, le=5, description="Number of passages to return before and after each hit, for context."
    )
    explain: bool = Field(True, description="Whether each hit has the rank and score of every stage.")

    @property
    def effective_k(self) -> int:
        """The number of hits to return: `k`, or less if the server's limit is below the default."""
        return min(self.k, SETTINGS.get().max_k)

    @property
    def all_filters(self) -> Filters:
        """The filters, those of `without` included."""
        return Filters.of(self.filters) & Filters.of({"without": [str(flag) for flag in self.without]})


class ExportFormat(StrEnum):
    """The format of an exported file."""

    csv = "csv"
    json = "json"


class ExportBody(SearchBody):
    """A search whose hits are exported to a file."""

    format: ExportFormat = Field(ExportFormat.csv, description="Format of the file.")


class AskBody(Body):
    """A question; see `Library.ask`."""

    model_config = examples(
        {"question": "What dose of vancomycin was she discharged on?", "filters": {"patient": "p03"}}
    )
    question: Question = Field(description="A question in plain words.")
    document: str | None = Field(None, max_length=1000, description="The id of the only document to read.")
    filters: FilterValues = Field({}, description="Conditions that every passage read matches.")
    k: int = Field(3, ge=1, le=100, description="Maximum number of answers.")
    top: int | None = Field(None, ge=1, le=100, description="Use `k`.", json_schema_extra={"deprecated": True})
    threshold: float | None = Field(
        None, ge=0, le=1, description="Minimum confidence of an answer. By default, that of the reader."
    )
    passages: int = Field(20, ge=1, le=200, description="Maximum number of passages to read.")


class FacetsBody(Body):
    """The documents to count."""

    model_config = examples({"filters": {"type": "Discharge summary", "date": "2024.."}})
    filters: FilterValues = Field({}, description="Conditions that every counted document matches.")
    without: list[Flag] = Field([], max_length=5, description="Accepted as in a search; does not change the counts.")


class ScoresBody(QueryBody):
    """The query to score the sentences of a document by."""

    model_config = examples({"entity": "heart failure", "aspect": "treatment"})


class DocumentBody(Body):
    """A document to add."""

    id: str = Field(min_length=1, max_length=1000, description="Unique in the library.")
    text: str = Field(description="Stored exactly as sent.")
    title: str = Field("", max_length=10_000)
    metadata: dict[str, Any] = Field(
        {}, max_length=200, description="`patient`, `date`, `type`, `source` and any other fields."
    )


class DocumentsBody(Body):
    """Documents to add."""

    model_config = examples(
        {
            "documents": [
                {"id": "n1", "text": "PLAN: Start aspirin.", "metadata": {"patient": "p1", "date": "2024-03-18"}}
            ],
            "replace": False,
        }
    )
    documents: list[DocumentBody] = Field(min_length=1, max_length=100_000)
    replace: bool = Field(False, description="Replace documents that have the same id and different contents.")


class SavedSearchBody(Body):
    """A search to save."""

    model_config = examples({"name": "Vancomycin", "address": "q=vancomycin"})
    name: str = Field(min_length=1, max_length=200)
    address: str = Field(max_length=10_000, description="The part of the page's address after the #.")


class OwnJudgementsBody(QueryBody):
    """The query whose judgements to list."""

    model_config = examples({"query": "Why was spironolactone stopped?"})


class FeedbackBody(QueryBody):
    """Whether a passage answers a query."""

    model_config = examples(
        {
            "query": "Why was spironolactone stopped?",
            "document": "p01-2024-10-02-clinic",
            "begin": 120,
            "end": 480,
            "answers": True,
        }
    )
    document: str = Field(min_length=1, max_length=1000)
    begin: int = Field(ge=0, le=2**31)
    end: int = Field(ge=0, le=2**31)
    answers: bool | None = Field(description="Whether the passage answers the query; null withdraws the judgement.")

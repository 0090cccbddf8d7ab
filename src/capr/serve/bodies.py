"""Bodies: what requests hold, with the names that Python and the command line use."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import Path, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from capr.annotate import Query as Asked
from capr.annotate.context import FLAGS
from capr.documents import CaprError
from capr.index import Filters
from capr.search.fusion import Fusion
from capr.search.passages import Group, Mode

TEXT = 100_000  # characters of any text in a request; a server allows queries of fewer
VALUES = 10_000  # values of a filter
PATTERNS = 100  # values with a *, of all filters: each is compared with every value that there is
Value = str | int | float
Text = Annotated[str, Field(max_length=TEXT)]
Name = Annotated[str, Field(max_length=200)]
Flag = StrEnum("Flag", {name: name for name in FLAGS})  # type: ignore[misc]
Filter = Annotated[list[Annotated[str, Field(max_length=1000)] | int | float], Field(max_length=VALUES)]


def _known(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Complains of filters that mean nothing, or too much."""
    try:
        found = Filters.of(values)
    except CaprError as error:
        raise ValueError(str(error)) from error
    patterns = sum("*" in value for condition in found.conditions for value in condition.values)
    if patterns > PATTERNS:
        raise ValueError(f"there are {patterns:,} values with a *, and {PATTERNS} are allowed")
    return values


Narrowed = Annotated[
    dict[Name, Filter | Annotated[str, Field(max_length=1000)] | int | float],
    Field(max_length=50, description="Name and value, or values of which one is enough; a ! after a name leaves out."),
    AfterValidator(_known),
]
Id = Annotated[str, Path(description="The id of a document, percent-encoded as a whole."), AfterValidator(unquote)]
Typed = Annotated[str, Query(max_length=200, description="The beginning of a name, as it is typed.")]
Offset = Annotated[int, Query(ge=0, le=1_000_000_000, description="How many to leave out.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many to give, at most.")]


class Body(BaseModel):
    """A body in which every field is known."""

    model_config = ConfigDict(extra="forbid")


class QueryBody(Body):
    """A question or words, or an entity with an aspect."""

    query: Text | None = Field(None, description='A question, or words with operators: "a phrase", -word, field:value.')
    entity: Text | None = Field(None, description="Instead of a query: what to look for.")
    aspect: Text | None = Field(None, description="What about it.")

    @model_validator(mode="after")
    def _one_of_them(self) -> QueryBody:
        try:
            _ = self.asked
        except CaprError as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def asked(self) -> Asked:
        """The query."""
        return Asked(self.query or "", self.entity or "", self.aspect or "")

    @property
    def told(self) -> dict[str, str]:
        """The same for the audit trail."""
        found = {"query": self.query, "entity": self.entity, "aspect": self.aspect}
        return {name: text for name, text in found.items() if text}


class SearchBody(QueryBody):
    """A search; see `Library.search`."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"query": "Why was spironolactone stopped?", "k": 3, "filters": {"patient": "p01"}},
                {"entity": "asthma", "aspect": "family history", "without": ["negated"], "group": "patient"},
            ]
        },
    )
    k: int = Field(10, ge=1, le=10_000, description="Passages to find, at most.")
    filters: Narrowed = Field({}, description="What passages have to pass.")
    without: list[Flag] = Field([], max_length=5, description="Only where the entity is not so.")
    mode: Mode = Field(Mode.hybrid, description="Compare words, meanings, both, or sentences.")
    fusion: Fusion = Field(Fusion.scores, description="How words and vectors are joined.")
    rerank: bool | None = Field(
        None, description="Whether the ranker puts the best in order; if null, in hybrid search."
    )
    group: Group | None = Field(None, description="One hit for each.")
    neighbours: int = Field(0, ge=0, le=5, description="Passages before and after each hit to show.")
    explain: bool = Field(True, description="Whether hits tell what each stage of the search said.")

    @property
    def narrowed(self) -> Filters:
        """All filters."""
        return Filters.of(self.filters) & Filters.of({"without": [str(flag) for flag in self.without]})


class Form(StrEnum):
    """Of an export."""

    csv = "csv"
    json = "json"


class ExportBody(SearchBody):
    """A search whose hits are wanted as a file."""

    format: Form = Field(Form.csv, description="Of the file.")


class AskBody(Body):
    """A question; see `Library.ask`."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"question": "What dose of vancomycin was she discharged on?", "filters": {"patient": "p03"}}]
        },
    )
    question: Text = Field(description="In plain words.")
    document: str | None = Field(None, max_length=1000, description="The id of the only one to read.")
    filters: Narrowed = Field({}, description="What passages have to pass.")
    top: int = Field(3, ge=1, le=100, description="Answers, at most.")
    threshold: float | None = Field(None, ge=0, le=1, description="Confidence from which on an answer counts.")
    passages: int = Field(20, ge=1, le=200, description="Passages to read, at most, where they are searched for.")


class FacetsBody(Body):
    """Which documents to count."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"filters": {"type": "Discharge summary", "date": "2024.."}}]}
    )
    filters: Narrowed = Field({}, description="What documents have to pass.")
    without: list[Flag] = Field([], max_length=5, description="As in a search; it changes no count of documents.")


class ScoresBody(QueryBody):
    """What the sentences of a document are scored by."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"entity": "heart failure", "aspect": "treatment"}]}
    )


class DocumentBody(Body):
    """A document to add."""

    id: str = Field(min_length=1, max_length=1000, description="Unique in the library.")
    text: str = Field(description="Kept to the character.")
    title: str = Field("", max_length=10_000)
    metadata: dict[str, Any] = Field({}, max_length=200, description="`patient`, `date`, `type`, `source`, and more.")


class DocumentsBody(Body):
    """Documents to add."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "documents": [
                        {
                            "id": "n1",
                            "text": "PLAN: Start aspirin.",
                            "metadata": {"patient": "p1", "date": "2024-03-18"},
                        }
                    ],
                    "replace": False,
                }
            ]
        },
    )
    documents: list[DocumentBody] = Field(min_length=1, max_length=100_000)
    replace: bool = Field(False, description="Exchange a document whose id is there with other contents.")


class SavedBody(Body):
    """A search to keep."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"name": "Vancomycin", "address": "query=vancomycin"}]}
    )
    name: str = Field(min_length=1, max_length=200)
    address: str = Field(max_length=10_000, description="The state of the page, as it stands after the #.")


class GivenBody(QueryBody):
    """The query of which one's own judgements are wanted."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"query": "Why was spironolactone stopped?"}]}
    )


class FeedbackBody(QueryBody):
    """Whether a passage answers a query."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"query": "Why was spironolactone stopped?", "document": "p01-2024-10-02-clinic", "begin": 120,
                          "end": 480, "answers": True}]
        },
    )  # fmt: skip
    document: str = Field(min_length=1, max_length=1000)
    begin: int = Field(ge=0, le=2**31)
    end: int = Field(ge=0, le=2**31)
    answers: bool | None = Field(description="Whether it does; null takes back what was said.")

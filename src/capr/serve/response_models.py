"""The JSON of replies about documents and searches, as models that give the OpenAPI document its schemas.

Those about the server are in `server_models`. Routes send plain dictionaries; the tests check every reply against its
model.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict


def _allow_new_fields(schema: dict[str, Any]) -> None:
    """Let clients that are generated from the schema accept fields that later versions add."""
    schema.pop("additionalProperties", None)


OLD_NAME: JsonDict = {"deprecated": True}  # of a field that replies still have


class Reply(BaseModel):
    """A JSON object whose fields are all listed here."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_allow_new_fields)


class SpanText(Reply):
    """A span of a document, and its text."""

    begin: int = Field(ge=0, description="Offset of the first character.")
    end: int = Field(ge=0, description="Offset after the last character.")
    text: str


class Cue(Reply):
    """The words that give a mention or an answer its context; a heading has no offsets if it is implied."""

    text: str
    begin: int | None
    end: int | None


class Concept(Reply):
    """An entry of the vocabulary."""

    system: str
    code: str
    name: str


class Mention(SpanText):
    """A span that names an entity. A context that does not apply is absent."""

    kind: str
    concept: Concept | None
    negated: Literal[True] = True
    possible: Literal[True] = True
    hypothetical: Literal[True] = True
    historical: Literal[True] = True
    family: Literal[True] = True
    cues: dict[str, Cue]


class ScoredSentence(SpanText):
    """A sentence and its score for the query."""

    score: float


class Stage(Reply):
    """The rank, from 1, and the score of a passage in one stage of the search."""

    rank: int
    score: float


class Hit(SpanText):
    """A passage that search returns. All offsets count characters of the text of its document."""

    document: str
    index: int = Field(description="Index of the passage in its document, from 0.")
    passages: int = Field(description="Number of passages in the document.")
    score: float
    title: str
    headings: list[str] = Field(description="The heading path, from the outermost heading in.")
    aspect: str
    metadata: dict[str, Any]
    sentences: list[ScoredSentence] = Field(description="The sentences that match the query best.")
    highlights: list[tuple[int, int]] = Field(description="Spans of words and names of the query.")
    mentions: list[Mention]
    stages: dict[str, Stage] = Field({}, description="By stage: `lexical`, `dense`, `cdv`, `fusion`, `late`, `rerank`.")
    neighbours: list[SpanText] = Field([], description="The passages before and after this one.")
    group: str = Field("", description="The document or patient of the group, in a grouped search.")
    others: list[Hit] = Field([], description="Further hits of the same group.")


class SearchReply(Reply):
    """The hits, best first, and how the query was understood."""

    took: float = Field(description="Seconds.")
    mode: str = Field(description="The mode of the search, which may differ from the requested one; see `notices`.")
    expanded: dict[str, list[str]] = Field(description="The other names searched for, by entity.")
    notices: list[str]
    hits: list[Hit]


class CitedHit(Hit):
    """A hit with a citation."""

    citation: str


class ExportReply(SearchReply):
    """A search whose hits have citations."""

    hits: list[CitedHit]  # type: ignore[assignment]


class AnswerLocation(SpanText):
    """Another span with the same answer."""

    document: str
    confidence: float
    headings: list[str]
    context: dict[str, Cue]


class Answer(AnswerLocation):
    """The words that answer a question, with their sentence and passage."""

    title: str
    metadata: dict[str, Any]
    sentence: SpanText
    passage: SpanText
    paragraph: SpanText = Field(description="Use `passage`.", json_schema_extra=OLD_NAME)
    places: list[AnswerLocation] = Field(description="Other spans with the same answer.")


class AskReply(Reply):
    """The answers, best first; those below the threshold are guesses."""

    question: str
    answered: bool = Field(description="Whether any answer reaches the threshold.")
    found: bool = Field(description="Use `answered`.", json_schema_extra=OLD_NAME)
    threshold: float = Field(description="Minimum confidence of an answer.")
    reader: str = Field(description="Name of the model that read the answers.")
    documents: int = Field(description="Number of documents read.")
    passages: int = Field(description="Number of passages read.")
    paragraphs: int = Field(description="Use `passages`.", json_schema_extra=OLD_NAME)
    took: float = Field(description="Seconds.")
    notices: list[str]
    answers: list[Answer]


class DocumentSummary(Reply):
    """A document without its text."""

    id: str
    title: str
    metadata: dict[str, Any]


class DocumentsReply(Reply):
    """A page of the list of documents."""

    documents: list[DocumentSummary]
    total: int = Field(description="Number of documents on all pages.")


class SectionReply(Reply):
    """A section of a document."""

    begin: int
    end: int
    level: int = Field(description="Depth of the heading, from 1.")
    heading: str


class DocumentPassage(Reply):
    """Where a passage begins and ends."""

    index: int
    begin: int
    end: int
    heading: str


class DocumentReply(DocumentSummary):
    """A document with everything that capr knows about it."""

    text: str
    sections: list[SectionReply]
    passages: list[DocumentPassage]
    sentences: list[tuple[int, int]]
    mentions: list[Mention]


class PassageReply(SpanText):
    """A passage."""

    document: str
    index: int
    passages: int
    headings: list[str]
    aspect: str
    mentions: list[Mention]


class SpanReply(Reply):
    """A span."""

    begin: int
    end: int


class CurveHeading(Reply):
    """A heading and the offset at which it begins."""

    begin: int
    heading: str


class CurveSentence(SpanReply):
    """The scores of a sentence for the entity, the aspect and both."""

    entity: float | None
    aspect: float | None
    both: float


class ScoresReply(Reply):
    """The scores of all sentences of a document for one query."""

    document: str
    entity: str
    aspect: str
    by: str = Field(description="The scorer of the sentences: `discourse`, `encoder` or `words`.")
    answer: SpanReply = Field(description="The run of sentences that answers the query best.")
    headings: list[CurveHeading]
    sentences: list[CurveSentence]


class ValueCount(Reply):
    """The number of documents with a value."""

    value: str
    count: int


class MonthCount(Reply):
    """The number of documents of a month."""

    month: str
    count: int


class FacetsReply(Reply):
    """The number of documents for each value of each field."""

    documents: int = Field(description="Number of documents that match all filters.")
    patient: list[ValueCount]
    type: list[ValueCount]
    source: list[ValueCount]
    aspect: list[ValueCount]
    more: dict[str, int] = Field(description="By field, the number of values that are not listed.")
    dates: list[MonthCount]
    undated: int = Field(description="Number of documents without a date.")


class PatientReply(Reply):
    """A patient with the dates of the first and last document; empty if no document has a date."""

    patient: str
    documents: int
    first: str
    last: str


class PatientsReply(Reply):
    """A page of the list of patients."""

    patients: list[PatientReply]
    total: int = Field(description="Number of patients on all pages.")


class Suggestion(Reply):
    """A name that begins with the prefix, and what it means."""

    name: str
    kind: str
    concept: Concept


class SuggestReply(Reply):
    """Completions of the name of an entity, best first."""

    suggestions: list[Suggestion]


class AspectCount(Reply):
    """An aspect and the number of documents that have a section about it."""

    name: str
    heading: str
    documents: int


class AspectsReply(Reply):
    """Completions of the name of an aspect, the most frequent first."""

    aspects: list[AspectCount]

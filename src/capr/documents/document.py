"""The data types that every stage works on: a document, its annotations and spans of its text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Span(NamedTuple):
    """A half-open range `[begin, end)` of characters of a document's text.

    Characters are Python's (Unicode code points), not bytes and not UTF-16 units.

    Attributes:
        begin: offset of the first character.
        end: offset after the last character.

    Example:
        >>> Span(7, 12).of("denies fever")
        'fever'
    """

    begin: int
    end: int

    def of(self, text: str) -> str:
        """Return the characters of `text` in this span."""
        return text[self.begin : self.end]

    def trimmed(self, text: str) -> Span:
        """Return the span without the white space at its ends.

        A span of white space alone becomes an empty span at its `begin`.

        >>> Span(0, 9).trimmed("  fever  ")
        Span(begin=2, end=7)
        """
        content = text[self.begin : self.end]
        if content and not content[0].isspace() and not content[-1].isspace():
            return self
        begin = self.begin + len(content) - len(content.lstrip())
        return Span(begin, max(begin, self.begin + len(content.rstrip())))

    def covers(self, other: Span) -> bool:
        """Return whether `other` lies entirely inside this span."""
        return self.begin <= other.begin and other.end <= self.end


@dataclass(frozen=True, slots=True)
class Annotation:
    """A statement of the *source* about a span of the text.

    capr never stores its own findings as annotations.

    Kinds in use: `section` (value: `heading`, perhaps `level`, `label`, `heading_end`), `question` (value: `id`,
    `question`, `answers`), `mention` (value: `type`), `page` (value: `number`).

    Attributes:
        kind: what the annotation marks, one of the kinds above or a kind of your own.
        span: the annotated characters.
        value: the fields of the annotation.
    """

    kind: str
    span: Span
    value: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Document:
    """A text with an id, a title and metadata: a note about a patient or an article about a disease.

    capr never alters the text, so a span of a document stays valid as long as the document exists.

    Attributes:
        id: unique in the library or list that holds the document.
        text: the exact text of the source; every span indexes it.
        title: a name for people; may be empty.
        metadata: `patient`, `date` (ISO 8601 if capr recognised its form), `type`, `source` (the collection), `file`,
            and any other fields of the source under their own names.
        annotations: what the source marked in the text, for example the sections of an article.

    Example:
        >>> note = Document("n1", "CC: Cough\\nNo fever.", metadata={"patient": "p7", "date": "2026-03-14"})
        >>> note[Span(13, 18)]
        'fever'
    """

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    annotations: tuple[Annotation, ...] = ()

    def __getitem__(self, span: Span) -> str:
        """Return the text of a span: `document[span]`."""
        return self.text[span.begin : span.end]

    def annotated(self, kind: str) -> list[Annotation]:
        """Return the source's annotations of one kind, in the order of the text."""
        return sorted((a for a in self.annotations if a.kind == kind), key=lambda a: a.span)

    def as_json(self) -> dict[str, Any]:
        """Return the document as a dictionary that `json` can write.

        The `jsonl` reader turns the dictionary back into an equal document.
        """
        record: dict[str, Any] = {
            "id": self.id,
            "title": self.title,
            "text": self.text,
            "metadata": dict(self.metadata),
        }
        if self.annotations:
            record["annotations"] = [
                {"kind": a.kind, "begin": a.span.begin, "end": a.span.end, **a.value} for a in self.annotations
            ]
        return record

"""What every stage works on: a document, and ranges of its characters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Span(NamedTuple):
    """A half-open range `[begin, end)` of characters of a document's text.

    Characters are Python's (Unicode code points), not bytes and not UTF-16 units.

    >>> Span(7, 12).of("denies fever")
    'fever'
    """

    begin: int
    end: int

    def of(self, text: str) -> str:
        """The characters themselves."""
        return text[self.begin : self.end]

    def trimmed(self, text: str) -> Span:
        """The same range without the blanks at its ends; empty (at its begin) if it is all blanks."""
        piece = text[self.begin : self.end]
        if piece and not piece[0].isspace() and not piece[-1].isspace():
            return self
        begin = self.begin + len(piece) - len(piece.lstrip())
        return Span(begin, max(begin, self.begin + len(piece.rstrip())))

    def covers(self, other: Span) -> bool:
        """Whether `other` lies wholly inside."""
        return self.begin <= other.begin and other.end <= self.end


@dataclass(frozen=True, slots=True)
class Annotation:
    """Something that the *source* said about a piece of the text; capr's own findings are never put here.

    Kinds in use: `section` (value: `heading`, perhaps `level`, `label`, `heading_end`), `question` (value: `id`,
    `question`, `answers`), `mention` (value: `type`), `page` (value: `number`).
    """

    kind: str
    span: Span
    value: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Document:
    """A text exactly as it was read, with what the source said about it.

    Attributes:
        id: unique in whatever holds the document.
        text: never altered after reading; every span indexes it.
        title: for people; may be empty.
        metadata: `patient`, `date` (ISO 8601 where it could be understood), `type`, `source` (the collection), `file`,
            and whatever else the source had, under the source's own names.
        annotations: what the source marked in the text, e.g. the sections of an article.
    """

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    annotations: tuple[Annotation, ...] = ()

    def __getitem__(self, span: Span) -> str:
        """`document[span]` is the text of that span."""
        return self.text[span.begin : span.end]

    def annotated(self, kind: str) -> list[Annotation]:
        """The source's annotations of one kind, in the order of the text."""
        return sorted((a for a in self.annotations if a.kind == kind), key=lambda a: a.span)

    def as_json(self) -> dict[str, Any]:
        """A plain dictionary; the `jsonl` reader reads it back to an equal document."""
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

"""Paragraphs: a document cut into the pieces that a reader of answers reads one by one.

Reference: Lanz and Pecina, Paragraph Retrieval for Enhanced Question Answering in Clinical Documents, 2024: by headings
that are frequent enough, uniformly, or not at all; or, as capr itself reads, passages with their neighbours.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from capr.documents.document import Document, Span
from capr.documents.problem import CaprError
from capr.segment.headings import HeadingCounts, normalised, possible_headings
from capr.segment.passages import passages
from capr.segment.sections import sections
from capr.segment.uniform import uniform

CUTS = ("passage", "heading", "uniform", "whole")
LENGTH = 1000  # characters: of 300 to 1,500, best on development reports


@dataclass(frozen=True, slots=True)
class Paragraphs:
    """A way of cutting: call it with a document, and it gives the spans of its paragraphs.

    Attributes:
        cut: `passage` (short neighbours together), `heading`, `uniform` or `whole`.
        length: of a uniform paragraph on average, or of passages together at most, in characters.
        counts: of headings (`count_headings`); without them, a lexicon and the marks of the source decide.
        threshold: how often a heading must have been counted to open a paragraph.

    Example:
        >>> note = Document("1", "ALLERGIES: None.\\nPLAN:\\nRest.\\n")
        >>> [note[span] for span in Paragraphs("heading")(note)]
        ['ALLERGIES: None.\\n', 'PLAN:\\nRest.\\n']
        >>> Paragraphs("uniform", length=15)(note), Paragraphs("whole")(note)
        ([Span(begin=0, end=14), Span(begin=14, end=29)], [Span(begin=0, end=29)])
    """

    cut: str = "heading"
    length: int = LENGTH
    counts: HeadingCounts | None = None
    threshold: int = 1

    def __post_init__(self) -> None:
        if self.cut not in CUTS:
            raise CaprError(f"there is no way {self.cut!r} to cut paragraphs. Fix: use one of {', '.join(CUTS)}.")
        if self.length < 1:
            raise CaprError(f"the length of a paragraph is {self.length}. Fix: give it at least 1 character.")

    @classmethod
    def of_length(cls, cut: str, length: int, documents: Sequence[Document]) -> Paragraphs:
        """The way that cuts these documents to about the length on average.

        By heading, their headings are counted, and the threshold is the one that comes nearest.
        """
        if cut != "heading":
            return cls(cut, length)
        counts = count_headings(documents)
        often = sorted(counts[key] for document in documents for _, key in _inner_openings(document))
        characters = sum(len(document.text) for document in documents)

        def distance(threshold: int) -> float:
            paragraphs = len(documents) + len(often) - bisect_left(often, threshold)
            return abs(characters / max(1, paragraphs) - length)

        choices = [*dict.fromkeys(often), max(often, default=0) + 1]
        return cls(cut, length, counts, min(choices, key=distance))

    def __call__(self, document: Document, answers: Sequence[Span] = ()) -> list[Span]:
        """The paragraphs, in order; together they are the text. None for a text without words.

        Args:
            document: any.
            answers: ranges that should not be cut, where they are known: a uniform border moves to the end of the
                answer that it cuts, a heading inside an answer opens nothing.
        """
        text = document.text
        if not text.strip():
            return []
        if self.cut == "whole":
            return [Span(0, len(text))]
        if self.cut == "uniform":
            return uniform(text, self.length, answers)
        begins = [begin for begin in self._begins(document) if not _inside(begin, answers)]
        return [Span(begin, end) for begin, end in pairwise([0, *begins, len(text)])]

    def _begins(self, document: Document) -> list[int]:
        """Where paragraphs begin, but for the first; a heading without a body goes with what follows it."""
        if self.cut == "passage":
            spans = [passage.span for passage in passages(document)]
            return [some[0].begin for some in together(document.text, spans, self.length)[1:]]
        if self.counts is not None:
            opened = _inner_openings(document)
            return [begin for begin, key in opened if self.counts.get(key, 0) >= self.threshold]
        begins: list[int] = []
        bare = True
        for section in sections(document):
            if not bare:
                begins.append(section.span.begin)
            bare = not document[section.body].strip()
        return begins


def together(text: str, spans: Iterable[Span], length: int) -> list[list[Span]]:
    """Ranges of a text, in order, each with the next while only blanks are between and all are not too long together.

    >>> together("One. Two. Three.", [Span(0, 4), Span(5, 9), Span(10, 16)], 10)
    [[Span(begin=0, end=4), Span(begin=5, end=9)], [Span(begin=10, end=16)]]
    """
    found: list[list[Span]] = []
    for span in spans:
        last = found[-1] if found else []
        follows = bool(last) and last[-1].end <= span.begin and not text[last[-1].end : span.begin].strip()
        if follows and span.end - last[0].begin <= length:
            last.append(span)
        else:
            found.append([span])
    return found


def count_headings(documents: Iterable[Document]) -> HeadingCounts:
    """How often each heading opens a section that the source marked or, where it marked none, a line of the text."""
    return HeadingCounts(key for document in documents for _, key in _openings(document))


def holding(paragraphs: Sequence[Span], span: Span) -> int:
    """The number of the paragraph in which a span begins.

    >>> holding([Span(0, 5), Span(5, 9)], Span(5, 7))
    1
    """
    return bisect_right(paragraphs, span.begin, key=lambda paragraph: paragraph.begin) - 1


def _openings(document: Document) -> list[tuple[int, str]]:
    """Where a heading stands, and the heading in the form in which it is counted."""
    marked = [(a.span.begin, normalised(str(a.value.get("heading") or ""))) for a in document.annotated("section")]
    if marked:
        return [(begin, key) for begin, key in marked if key]
    return [(heading.begin, normalised(heading.words)) for heading in possible_headings(document.text)]


def _inner_openings(document: Document) -> list[tuple[int, str]]:
    """The same without those that have no words before them: there a paragraph begins anyway."""
    text = document.text
    first = len(text) - len(text.lstrip())
    return [(begin, key) for begin, key in dict.fromkeys(_openings(document)) if begin > first]


def _inside(begin: int, answers: Sequence[Span]) -> bool:
    return any(answer.begin < begin < answer.end for answer in answers)

"""Paragraphs: the segments of a document that a reader of answers reads one at a time.

Reference: Lanz and Pecina, Paragraph Retrieval for Enhanced Question Answering in Clinical Documents, 2024. The paper
cuts by headings that are frequent enough, uniformly, or not at all. capr's own search groups neighbouring passages.
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
LENGTH = 1000  # characters: the best length from 300 to 1,500 on development reports


@dataclass(frozen=True, slots=True)
class Paragraphs:
    """A method of cutting documents into paragraphs. Call the object with a document to get the spans.

    Attributes:
        cut: `passage` (groups of neighbouring passages), `heading`, `uniform` or `whole`.
        length: in characters, the average length of a uniform paragraph or the maximum length of a group of passages.
        counts: counts of headings (`count_headings`). Without them, a lexicon and the annotations of the source decide.
        threshold: the minimum count of a heading that opens a paragraph.

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
            raise CaprError(f"there is no method {self.cut!r} to cut paragraphs. Fix: use one of {', '.join(CUTS)}.")
        if self.length < 1:
            raise CaprError(f"the length of a paragraph is {self.length}. Fix: give it at least 1 character.")

    @classmethod
    def of_length(cls, cut: str, length: int, documents: Sequence[Document]) -> Paragraphs:
        """Return the method that cuts documents to paragraphs of about a given length on average.

        Args:
            cut: as in the constructor. For `heading`, the function counts the headings of the documents and chooses the
                threshold whose average length comes closest.
            length: the average length of a paragraph, in characters.
            documents: the documents to measure.
        """
        if cut != "heading":
            return cls(cut, length)
        counts = count_headings(documents)
        frequencies = sorted(counts[key] for document in documents for _, key in _inner_headings(document))
        characters = sum(len(document.text) for document in documents)

        def distance(threshold: int) -> float:
            paragraphs = len(documents) + len(frequencies) - bisect_left(frequencies, threshold)
            return abs(characters / max(1, paragraphs) - length)

        thresholds = [*dict.fromkeys(frequencies), max(frequencies, default=0) + 1]
        return cls(cut, length, counts, min(thresholds, key=distance))

    def __call__(self, document: Document, answers: Sequence[Span] = ()) -> list[Span]:
        """Cut a document into paragraphs.

        Args:
            document: any document.
            answers: spans that should not be cut, if the caller knows them. A uniform boundary inside an answer moves
                to the end of that answer; a heading inside an answer does not open a paragraph.

        Returns:
            The spans in order. Together they are the text. A text without words has no paragraphs.
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
        """Return the offsets of all paragraphs but the first. A heading without a body joins the next paragraph."""
        if self.cut == "passage":
            spans = [passage.span for passage in passages(document)]
            return [group[0].begin for group in group_spans(document.text, spans, self.length)[1:]]
        if self.counts is not None:
            headings = _inner_headings(document)
            return [begin for begin, key in headings if self.counts.get(key, 0) >= self.threshold]
        begins: list[int] = []
        previous_is_empty = True
        for section in sections(document):
            if not previous_is_empty:
                begins.append(section.span.begin)
            previous_is_empty = not document[section.body].strip()
        return begins


def group_spans(text: str, spans: Iterable[Span], length: int) -> list[list[Span]]:
    """Group neighbouring spans of a text.

    Args:
        text: the text of the spans.
        spans: the spans in the order of the text. A group contains spans with only white space between them.
        length: the maximum length of a group of several spans, in characters.

    Example:
        >>> group_spans("One. Two. Three.", [Span(0, 4), Span(5, 9), Span(10, 16)], 10)
        [[Span(begin=0, end=4), Span(begin=5, end=9)], [Span(begin=10, end=16)]]
    """
    groups: list[list[Span]] = []
    for span in spans:
        group = groups[-1] if groups else []
        is_neighbour = bool(group) and group[-1].end <= span.begin and not text[group[-1].end : span.begin].strip()
        if is_neighbour and span.end - group[0].begin <= length:
            group.append(span)
        else:
            groups.append([span])
    return groups


def count_headings(documents: Iterable[Document]) -> HeadingCounts:
    """Count the headings of sections that the source marked or, in a document without such sections, of lines."""
    return HeadingCounts(key for document in documents for _, key in _headings(document))


def paragraph_index(paragraphs: Sequence[Span], span: Span) -> int:
    """Return the index of the paragraph in which a span begins, counted from 0.

    >>> paragraph_index([Span(0, 5), Span(5, 9)], Span(5, 7))
    1
    """
    return bisect_right(paragraphs, span.begin, key=lambda paragraph: paragraph.begin) - 1


def _headings(document: Document) -> list[tuple[int, str]]:
    """Return the offset of each heading, and the heading in the form in which it is counted."""
    annotated = [(a.span.begin, normalised(str(a.value.get("heading") or ""))) for a in document.annotated("section")]
    if annotated:
        return [(begin, key) for begin, key in annotated if key]
    return [(heading.begin, normalised(heading.words)) for heading in possible_headings(document.text)]


def _inner_headings(document: Document) -> list[tuple[int, str]]:
    """Return the headings except a heading at the start of the text, where a paragraph begins anyway."""
    text = document.text
    text_begin = len(text) - len(text.lstrip())
    return [(begin, key) for begin, key in dict.fromkeys(_headings(document)) if begin > text_begin]


def _inside(begin: int, answers: Sequence[Span]) -> bool:
    return any(answer.begin < begin < answer.end for answer in answers)

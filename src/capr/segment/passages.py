"""Passages: neighbouring sentences of one section, up to a maximum number of words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from capr.documents.document import Document, Span
from capr.segment.cutting import MAX_WORDS
from capr.segment.outline import Outline, outline
from capr.segment.sections import Section

WORD = re.compile(r"\S+")
LAST_WORD = re.compile(r"\S+$")
OPENING_LENGTH = 200  # characters


@dataclass(frozen=True, slots=True)
class Passage:
    """A few neighbouring sentences of one section: the unit that search returns.

    Attributes:
        document: the id of the document.
        index: the index of the passage in its document, counted from 0.
        span: the characters of the passage, without white space at the ends.
        heading: the heading of the section. A passage that lies in one subsection has a heading path: `A | B`.
        heading_span: the span of the heading, if the passage begins with the heading.
        sentences: the spans of the sentences.
        previous, next: the spans of the neighbouring passages; None at the ends of the document.

    Example:
        >>> note = Document("n1", "PLAN: Rest. Drink.\\nDIET: Tea.")
        >>> for passage in passages(note):
        ...     print(passage.index, passage.heading, repr(note[passage.body]))
        0 PLAN ' Rest. Drink.'
        1 DIET ' Tea.'
    """

    document: str
    index: int
    span: Span
    heading: str | None
    heading_span: Span | None
    sentences: tuple[Span, ...]
    previous: Span | None = None
    next: Span | None = None

    @property
    def body(self) -> Span:
        """The span of the passage without the heading that it begins with."""
        return Span(min(self.heading_span.end, self.span.end), self.span.end) if self.heading_span else self.span


def opening(text: str, begin: int) -> str:
    """Return the first words of a text, which tell a model what a later passage is about.

    Args:
        text: the text of a document.
        begin: the offset of the passage. The opening ends there at the latest.

    Example:
        >>> opening("Gout is a form of arthritis. It is treated with rest.", 29)
        'Gout is a form of arthritis.'
    """
    first_words = text[: min(begin, OPENING_LENGTH)]
    if begin > OPENING_LENGTH and not text[OPENING_LENGTH].isspace():
        first_words = LAST_WORD.sub("", first_words)
    return " ".join(first_words.split())


def with_labels(text: str, *labels: str) -> str:
    """Return a text as models read it: after labels that say what it is about, such as a title or a heading.

    Empty labels are left out.

    >>> with_labels("Rest and ice.", "Gout", "", "Treatment")
    'Gout | Treatment | Rest and ice.'
    """
    return " | ".join(part for part in (*labels, text) if part)


def passages(
    document: Document,
    max_words: int = MAX_WORDS,
    counts: Mapping[str, int] | None = None,
    threshold: int = 1,
    known: Outline | None = None,
) -> list[Passage]:
    """Cut a document into passages. Together they contain every character that is not white space.

    A passage takes sentences until the next one would exceed the limit. Subsections (`Examination | Lungs`) of one
    section share a passage if they fit; two sections never do. A sentence that alone exceeds the limit is cut between
    words.

    Args:
        document: any document.
        max_words: the maximum length of a passage, in words separated by white space.
        counts: counts of headings in a training set, as for `sections`.
        threshold: the minimum count of a heading that opens a section.
        known: the document's outline, if the caller has it; `passages` then ignores `counts` and `threshold`.

    Returns:
        The passages in the order of the text.

    Example:
        >>> note = Document("1", "PLAN: Rest. Drink. Return if worse.")
        >>> [note[passage.span] for passage in passages(note, max_words=4)]
        ['PLAN: Rest. Drink.', 'Return if worse.']
    """
    if max_words < 1:
        raise ValueError(f"a passage of at most {max_words} words cannot hold anything; give at least 1")
    groups = _group_subsections(document, known or outline(document, counts, threshold))
    contents = [content for group in groups for content in _pack(document.text, group, max_words)]
    spans = [Span(sentences[0].begin, sentences[-1].end) for _, sentences in contents]
    result = []
    for index, (sections, sentences) in enumerate(contents):
        heading_span = sections[0].heading_span
        if heading_span is not None and not spans[index].covers(heading_span):
            heading_span = None
        result.append(
            Passage(
                document.id,
                index,
                spans[index],
                sections[0].heading if len(sections) == 1 else sections[0].top,
                heading_span,
                tuple(sentences),
                spans[index - 1] if index else None,
                spans[index + 1] if index + 1 < len(spans) else None,
            )
        )
    return result


SectionSentences = tuple[Section, list[Span]]  # a section or subsection with its sentences
PassageContent = tuple[list[Section], list[Span]]  # the sections and the sentences of a passage


def _group_subsections(document: Document, outline: Outline) -> Iterator[list[SectionSentences]]:
    """Yield each section with its subsections (`A`, `A | B`, `A | C`). Cut sentences where a section begins."""
    sentences = list(outline.sentences)
    group: list[SectionSentences] = []
    position = 0
    for section in outline.sections:
        own_sentences = []
        while position < len(sentences) and sentences[position].begin < section.span.end:
            sentence = sentences[position]
            if sentence.end > section.span.end:  # the sentence continues in the next section
                sentences[position] = Span(section.span.end, sentence.end).trimmed(document.text)
                sentence = Span(sentence.begin, section.span.end).trimmed(document.text)
            else:
                position += 1
            if sentence.begin < sentence.end:
                own_sentences.append(sentence)
        if not own_sentences:
            continue
        is_subsection = " | " in (section.heading or "") and bool(group) and section.top == group[0][0].top
        if group and not is_subsection:
            yield group
            group = []
        group.append((section, own_sentences))
    if group:
        yield group


def _pack(text: str, group: Sequence[SectionSentences], max_words: int) -> Iterator[PassageContent]:
    """Pack complete subsections into passages, and a subsection that is too long sentence by sentence."""
    if group[-1][1][-1].end - group[0][1][0].begin < 2 * max_words:  # a word and its space take two characters or more
        yield [section for section, _ in group], [sentence for _, sentences in group for sentence in sentences]
        return
    content: PassageContent = ([], [])
    words = 0
    for section, sentences in group:
        sizes = [len(text[begin:end].split()) for begin, end in sentences]
        size = sum(sizes)
        if words and words + size > max_words:
            yield content
            content, words = ([], []), 0
        if size <= max_words:
            content[0].append(section)
            content[1].extend(sentences)
            words += size
            continue
        for sentence, size in _cut_long_sentences(text, sentences, sizes, max_words):
            if words and words + size > max_words:
                yield content
                content, words = ([], []), 0
            content = ([section], content[1])
            content[1].append(sentence)
            words += size
    if content[1]:
        yield content


def _cut_long_sentences(
    text: str, sentences: Sequence[Span], sizes: Sequence[int], max_words: int
) -> Iterator[tuple[Span, int]]:
    """Yield sentences with their numbers of words, and cut those with more than `max_words`."""
    for sentence, size in zip(sentences, sizes, strict=True):
        if size <= max_words:
            yield sentence, size
            continue
        words = [match.span() for match in WORD.finditer(text, *sentence)]
        for i in range(0, len(words), max_words):
            run = words[i : i + max_words]
            yield Span(run[0][0], run[-1][1]), len(run)

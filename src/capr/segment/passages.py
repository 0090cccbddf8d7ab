"""Passages: whole sentences, at most so many words, never across a section."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from capr.documents.document import Document, Span
from capr.segment.sections import Section, sections
from capr.segment.sentences import sentences

WORD = re.compile(r"\S+")
LAST = re.compile(r"\S+$")
MAX_WORDS = 250
OPENING = 200  # characters


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document that is searched and shown as one.

    Attributes:
        document: the id of the document.
        index: its place among the passages of the document, from 0.
        span: from its first to its last character that is not blank.
        heading: of the section; of the part of it (`A | B`) if the passage lies in one part.
        heading_span: the heading in the text, if the passage begins with it.
        sentences: the sentences in it.
        previous, next: the spans of its neighbours; None at the ends of the document.
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
        """The passage without the heading that it begins with."""
        return Span(min(self.heading_span.end, self.span.end), self.span.end) if self.heading_span else self.span


def opening(text: str, begin: int) -> str:
    """How a text opens, for what begins later in it: its first words, which tell what it is about.

    >>> opening("Gout is a form of arthritis. It is treated with rest.", 29)
    'Gout is a form of arthritis.'
    """
    first = text[: min(begin, OPENING)]
    if begin > OPENING and not text[OPENING].isspace():
        first = LAST.sub("", first)
    return " ".join(first.split())


def under(text: str, *above: str) -> str:
    """A text as models read it, under what tells what it is about: a title, a heading, an opening.

    >>> under("Rest and ice.", "Gout", "", "Treatment")
    'Gout | Treatment | Rest and ice.'
    """
    return " | ".join(part for part in (*above, text) if part)


def passages(
    document: Document,
    max_words: int = MAX_WORDS,
    counts: Mapping[str, int] | None = None,
    threshold: int = 1,
) -> list[Passage]:
    """Cuts a document into passages; together they hold every character that is not blank.

    Sentences are packed until the next would exceed the limit. Parts of a section (`Examination | Lungs`) share a
    passage while there is room; sections do not. Only a sentence that is too long by itself is cut, between words.

    Args:
        document: any document.
        max_words: the limit, in words as white space separates them.
        counts: headings that open a section, as for `sections`.
        threshold: how often such a heading must have been counted.

    Example:
        >>> note = Document("1", "PLAN: Rest. Drink. Return if worse.")
        >>> [note[passage.span] for passage in passages(note, max_words=4)]
        ['PLAN: Rest. Drink.', 'Return if worse.']
    """
    if max_words < 1:
        raise ValueError(f"a passage of at most {max_words} words cannot hold anything; give at least 1")
    whole = _whole_sections(document, sections(document, counts, threshold))
    pieces = [piece for section in whole for piece in _packed(document.text, section, max_words)]
    spans = [Span(cut[0].begin, cut[-1].end) for _, cut in pieces]
    found = []
    for index, (parts, cut) in enumerate(pieces):
        heading_span = parts[0].heading_span
        if heading_span is not None and not spans[index].covers(heading_span):
            heading_span = None
        found.append(
            Passage(
                document.id,
                index,
                spans[index],
                parts[0].heading if len(parts) == 1 else parts[0].top,
                heading_span,
                tuple(cut),
                spans[index - 1] if index else None,
                spans[index + 1] if index + 1 < len(spans) else None,
            )
        )
    return found


Part = tuple[Section, list[Span]]  # a section or a part of one, with its sentences


def _whole_sections(document: Document, found: Sequence[Section]) -> Iterator[list[Part]]:
    """The sections with their parts (`A`, `A | B`, `A | C`) in one list; sentences are cut where a section begins."""
    cut = sentences(document.text)
    group: list[Part] = []
    position = 0
    for section in found:
        inside = []
        while position < len(cut) and cut[position].begin < section.span.end:
            sentence = cut[position]
            if sentence.end > section.span.end:  # it runs into the next section
                cut[position] = Span(section.span.end, sentence.end).trimmed(document.text)
                sentence = Span(sentence.begin, section.span.end).trimmed(document.text)
            else:
                position += 1
            if sentence.begin < sentence.end:
                inside.append(sentence)
        if not inside:
            continue
        part = " | " in (section.heading or "") and bool(group) and section.top == group[0][0].top
        if group and not part:
            yield group
            group = []
        group.append((section, inside))
    if group:
        yield group


def _packed(text: str, parts: Sequence[Part], max_words: int) -> Iterator[tuple[list[Section], list[Span]]]:
    """Whole parts while they fit, then whole sentences of a part that does not."""
    if parts[-1][1][-1].end - parts[0][1][0].begin < 2 * max_words:  # a word takes two characters, with its blank
        yield [section for section, _ in parts], [sentence for _, inside in parts for sentence in inside]
        return
    packed: tuple[list[Section], list[Span]] = ([], [])
    words = 0
    for section, inside in parts:
        sizes = [len(text[begin:end].split()) for begin, end in inside]
        size = sum(sizes)
        if words and words + size > max_words:
            yield packed
            packed, words = ([], []), 0
        if size <= max_words:
            packed[0].append(section)
            packed[1].extend(inside)
            words += size
            continue
        for sentence, size in _short_enough(text, inside, sizes, max_words):
            if words and words + size > max_words:
                yield packed
                packed, words = ([], []), 0
            packed = ([section], packed[1])
            packed[1].append(sentence)
            words += size
    if packed[1]:
        yield packed


def _short_enough(text: str, cut: Sequence[Span], sizes: Sequence[int], max_words: int) -> Iterator[tuple[Span, int]]:
    """The sentences and their sizes; one that is longer than a whole passage in pieces."""
    for sentence, size in zip(cut, sizes, strict=True):
        if size <= max_words:
            yield sentence, size
            continue
        words = [match.span() for match in WORD.finditer(text, *sentence)]
        for i in range(0, len(words), max_words):
            piece = words[i : i + max_words]
            yield Span(piece[0][0], piece[-1][1]), len(piece)

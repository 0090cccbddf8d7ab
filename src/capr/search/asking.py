"""Asking: reads the paragraphs of documents, and gives the words that answer a question.

Reference: Lanz and Pecina, Paragraph Retrieval for Enhanced Question Answering in Clinical Documents, 2024.
"""

from __future__ import annotations

import os
import re
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from capr.annotate import Vocabulary
from capr.annotate.context import FLAGS, Cue, context
from capr.annotate.gazetteer import Gazetteer
from capr.annotate.mentions import annotator
from capr.documents import CaprError, Document, Notice, Problem, ReadError, Span, read
from capr.index.filters import clean
from capr.search.answers import Answer, Answers, Place
from capr.search.generative import GenerativeReader
from capr.search.models import answer_reader
from capr.search.paragraphs import MOST, Paragraph, Stretch, cut, stretches
from capr.search.reader import AnswerReader, Reading, unread
from capr.segment import Section, sections

PASSAGES = 20  # that are read of many
BEST = 5  # readings of one paragraph
DIFFERENT = ("negated", "hypothetical", "family")  # properties that make the same words another answer
OPENING = 3  # words of an answer before what is mentioned in it, or what is said of that
COMPARED = 100  # readings, the surest, among which equal answers are looked for
LONGEST = 1000  # characters of a question
LARGEST = 100  # answers
QUOTED = 5  # words of what was not read
SHOWN = 8  # documents that are named where another one was asked for
OPERATOR = re.compile(r'"|(?<!\S)[+-]+|(?<=\w):(?=\w)')  # that a question may have, and means nothing by
AROUND = " \t\r\n\"'“”‘’()[]"
AFTER = f"{AROUND}.,;:!?"


@dataclass(frozen=True, slots=True)
class Options:
    """How to ask; see `ask` and `Library.ask`."""

    top: int = 3
    threshold: float | None = None
    passages: int = PASSAGES

    def __post_init__(self) -> None:
        wrong = []
        if type(self.top) is not int or not 1 <= self.top <= LARGEST:
            wrong.append(f"top is {self.top!r}. Fix: ask for 1 to {LARGEST} answers.")
        if type(self.passages) is not int or not 1 <= self.passages <= MOST:
            wrong.append(f"passages is {self.passages!r}. Fix: have 1 to {MOST:,} passages read.")
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            wrong.append(f"the threshold is {self.threshold!r}. Fix: use a confidence from 0 to 1.")
        if wrong:
            raise CaprError(" ".join(wrong))


def ask(
    documents: Document | str | os.PathLike[str] | Iterable[Document],
    question: str,
    *,
    document: str | None = None,
    top: int = 3,
    reader: AnswerReader | str | os.PathLike[str] | None = None,
    threshold: float | None = None,
    vocabulary: Vocabulary | None = None,
) -> Answers:
    """Reads the answers to a question out of documents that are in no library; every passage is read.

    Args:
        documents: one or many, or a file or folder to read.
        question: in plain words.
        document: the id of the only one to read.
        top: how many answers, at most.
        reader: a folder or an `AnswerReader`; if not given, the one that ships.
        threshold: the confidence from which on an answer counts; if not given, that of the reader.
        vocabulary: with names of your own, which tell what an answer speaks of.

    Raises:
        CaprError: there is no question, no document or no reader, or there is too much to read.
    """
    begun = time.perf_counter()
    options = Options(top, threshold)
    asked = checked(question)
    model = answer_reader(reader)
    notices: list[str] = []
    chosen = _chosen(_documents(documents, notices), document)
    gazetteer = annotator(False, vocabulary or Vocabulary.load()).gazetteer
    return answered(asked, list(cut(chosen)), model, options, gazetteer, notices, begun)


def checked(question: str) -> str:
    """A question without the blanks around it, if it can be read."""
    asked = clean(question).strip()
    if not any(map(str.isalnum, asked)):
        raise CaprError("there is no question. Fix: write one, in plain words.")
    if len(asked) > LONGEST:
        fact = f"the question has {len(asked):,} characters, and only {LONGEST:,} are read"
        raise CaprError(f"{fact}. Fix: ask shorter.")
    return asked


def as_query(question: str) -> str:
    """A question without what a search would take for operators.

    >>> as_query('What does "NPO" in patient:p1 mean?')
    'What does  NPO  in patient p1 mean?'
    """
    return OPERATOR.sub(" ", question)


def answered(
    question: str,
    paragraphs: Sequence[Paragraph],
    reader: AnswerReader,
    options: Options,
    gazetteer: Gazetteer,
    notices: Sequence[str] = (),
    begun: float | None = None,
) -> Answers:
    """The answers in paragraphs, ranked by the confidence of the reader alone; `begun` tells since when it takes."""
    begun = time.perf_counter() if begun is None else begun
    told = list(notices)
    parts = stretches(paragraphs)
    readings, name = _read(question, [part.text for part in parts], reader, told)
    threshold = reader.threshold if options.threshold is None else options.threshold
    finder = _Finder(gazetteer)
    found = [finder.answer(*one) for one in _surest(parts, readings)]
    best = merged(found, threshold)[: options.top]
    count = len({id(paragraph.document) for paragraph in paragraphs})
    took = time.perf_counter() - begun
    return Answers(question, tuple(best), threshold, name, count, len(paragraphs), took, tuple(told))


def _read(
    question: str, texts: Sequence[str], reader: AnswerReader, notices: list[str]
) -> tuple[list[list[Reading]], str]:
    """The readings of each text, and who read them."""
    if rest := unread(reader, question):
        notices.append(f"the end of the question was too long to be read, from {_begin(rest)!r} on. Fix: ask shorter.")
    if isinstance(reader, GenerativeReader):
        readings, told, name = reader.read_and_tell(question, texts, BEST)
        notices += told
        return readings, name
    return reader.read(question, texts, BEST) if texts else [], reader.name


def _begin(text: str) -> str:
    return " ".join(text.split()[:QUOTED])


def _surest(parts: Sequence[Stretch], readings: Sequence[Sequence[Reading]]) -> list[tuple[Paragraph, Span, float]]:
    """The readings that are compared, the surest first; of those that overlap, the surest.

    Of several readings of one stretch, other words than the surest are right only if that is wrong.
    """
    every = []
    for part, some in zip(parts, readings, strict=True):
        surest = max(some, key=lambda one: one.confidence, default=Reading(Span(0, 0), 0.0))
        said = normalised(surest.span.of(part.text))
        for one in some:
            paragraph, span = part.placed(one.span)
            span = span.trimmed(paragraph.document.text)
            share = 1.0 if normalised(one.span.of(part.text)) == said else 1 - surest.confidence
            if span.begin < span.end:
                every.append((paragraph, span, share * one.confidence))
    taken: dict[int, list[Span]] = {}
    chosen: list[tuple[Paragraph, Span, float]] = []
    for paragraph, span, confidence in sorted(every, key=lambda found: -found[2]):
        others = taken.setdefault(id(paragraph.document), [])
        if len(chosen) < COMPARED and not any(_overlap(span, other) for other in others):
            others.append(span)
            chosen.append((paragraph, span, confidence))
    return chosen


def _overlap(one: Span, other: Span) -> bool:
    return one.begin < other.end and other.begin < one.end


def merged(found: Iterable[Answer], threshold: float) -> list[Answer]:
    """Answers of which equal ones are one: that which comes first, with the places of the others.

    They are equal if their words are, if they are about the same patient, and if both or none are negated, a
    relative's, or a case that may come. A place counts only if the answer at it would: 40 mg of another drug is no
    place of that dose.
    """
    same: dict[tuple[str, str, tuple[str, ...]], list[Answer]] = {}
    for answer in found:
        patient = str(answer.metadata.get("patient") or "")
        said = tuple(flag for flag in DIFFERENT if flag in answer.context)
        same.setdefault((normalised(answer.text), patient, said), []).append(answer)
    return [
        replace(first, places=tuple(_place(other) for other in others if other.confidence >= threshold))
        for first, *others in same.values()
    ]


def normalised(text: str) -> str:
    """The words of an answer by which it is compared; what stands inside stays, since 1.5 mg is not 15 mg.

    >>> normalised('"Lasix  40 MG."') == normalised("lasix 40 mg"), normalised(".5 mg")
    (True, '.5 mg')
    """
    words = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    return words.lstrip(AROUND).rstrip(AFTER) or words


def _place(answer: Answer) -> Place:
    return Place(answer.document, answer.span, answer.text, answer.headings, answer.confidence, answer.context)


class _Finder:
    """Says where answers stand, and in what context."""

    def __init__(self, gazetteer: Gazetteer) -> None:
        self._gazetteer = gazetteer
        self._sections: dict[int, list[Section]] = {}

    def answer(self, paragraph: Paragraph, span: Span, confidence: float) -> Answer:
        document, passage = paragraph.document, paragraph.passage
        inside = [sentence for sentence in passage.sentences if _overlap(sentence, span)]
        sentence = Span(inside[0].begin, inside[-1].end) if inside else passage.span
        heading = self._heading(document, span)
        said = self._context(document, span, inside or [sentence], heading)
        path = tuple(heading.split(" | ")) if heading else ()
        return Answer(document, span, confidence, passage.span, sentence, path, said)

    def _heading(self, document: Document, span: Span) -> str | None:
        """Of the innermost section, which may be one of several in a passage."""
        if id(document) not in self._sections:
            self._sections[id(document)] = sections(document)
        parts = self._sections[id(document)]
        return next((part.heading for part in reversed(parts) if part.span.begin <= span.begin), None)

    def _context(
        self, document: Document, span: Span, sentences: Sequence[Span], heading: str | None
    ) -> Mapping[str, Cue]:
        """What is said of the answer as a whole, and of all that is mentioned in it ("she denies chest pain").

        What is said late in a long answer is only a part of it.
        """

        def said(target: Span) -> Mapping[str, Cue]:
            within = next((one for one in reversed(sentences) if one.begin <= target.begin), sentences[0])
            return context(document.text, target, heading, within)

        names = [name.span for name in self._gazetteer.find(document[span])]
        each = [said(Span(span.begin + name.begin, span.begin + name.end)) for name in names]
        found = {}
        for flag, cue in each[0].items() if each else ():
            first = span.begin + names[0].begin
            before = document.text[span.begin : min(first, cue.span.begin) if cue.span else first]
            if len(before.split()) <= OPENING and all(flag in other for other in each):
                found[flag] = cue
        found |= said(span)
        return {flag: found[flag] for flag in FLAGS if flag in found}


def _documents(given: Document | str | os.PathLike[str] | Iterable[Document], notices: list[str]) -> Iterator[Document]:
    """Documents as they are, or those of a file; what could not be read of it is told, or raised if nothing could."""
    if isinstance(given, Document):
        yield given
        return
    if not isinstance(given, str | os.PathLike):
        yield from given
        return
    problems: list[Problem] = []
    reading = read(given, on_problem=problems.append)
    yield from reading
    if not reading.documents:
        lost = [problem for problem in problems if not isinstance(problem, Notice)]
        nothing = Problem("there is no document in it", "name a file or folder that has one", str(given))
        raise ReadError(lost[0] if lost else nothing)
    notices += map(str, problems)


def _chosen(documents: Iterable[Document], id: str | None) -> Iterator[Document]:
    """All documents, or the one that was named."""
    if id is None:
        yield from documents
        return
    known = []
    for document in documents:
        if document.id == id:
            yield document
            return
        known.append(document.id)
    there = ", ".join(known[:SHOWN]) + (", ..." if len(known) > SHOWN else "")
    raise CaprError(f"there is no document {id!r}. Fix: name one that is there ({there or 'there is none'}).")

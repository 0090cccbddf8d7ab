"""Answering: read passages, and return the words in them that answer a question.

Reference: Lanz and Pecina, Paragraph Retrieval for Enhanced Question Answering in Clinical Documents, 2024.
"""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from capr.annotate.context import FLAGS, Cue, context
from capr.annotate.gazetteer import Gazetteer
from capr.documents import Document, Span
from capr.runtime.reader import AnswerReader, NotifyingReader, ReadAnswer, unread
from capr.search.answers import Answer, Answers, Place
from capr.search.paragraphs import Paragraph, PassageToRead, join_passages
from capr.segment import Section, sections

BEST = 5  # answers that the reader marks in one text
DISTINCTIVE_FLAGS = ("negated", "hypothetical", "family")  # equal words that differ in these are different answers
OPENING = 3  # maximum words of an answer before its first mention or the cue of that mention
MAX_CANDIDATES = 100  # the candidates that are compared with each other
QUOTED = 5  # words to quote from the unread end of a question
AROUND = " \t\r\n\"'“”‘’()[]"
AFTER = f"{AROUND}.,;:!?"


def answer_question(
    question: str,
    passages: Sequence[PassageToRead],
    reader: AnswerReader,
    gazetteer: Gazetteer,
    k: int,
    threshold: float | None = None,
    notices: Sequence[str] = (),
    start: float | None = None,
) -> Answers:
    """Return the answers in passages, ranked by the confidence of the reader alone.

    Args:
        question: in plain words.
        passages: the passages to read.
        reader: marks the answers.
        gazetteer: finds the mentions in an answer, which give it context.
        k: the maximum number of answers.
        threshold: the minimum confidence of an answer; default: the threshold of the reader.
        notices: notices from the choice of the passages.
        start: the time from which `took` counts; default: now.
    """
    start = time.perf_counter() if start is None else start
    all_notices = list(notices)
    paragraphs = join_passages(passages)
    texts = [paragraph.text for paragraph in paragraphs]
    answers_by_paragraph, reader_name = _read(question, texts, reader, all_notices)
    threshold = reader.threshold if threshold is None else threshold
    builder = _AnswerBuilder(gazetteer)
    candidates = [builder.answer(*candidate) for candidate in _best_candidates(paragraphs, answers_by_paragraph)]
    best = merged(candidates, threshold)[:k]
    documents = len({id(item.document) for item in passages})
    took = time.perf_counter() - start
    return Answers(question, tuple(best), threshold, reader_name, documents, len(passages), took, tuple(all_notices))


def _read(
    question: str, texts: Sequence[str], reader: AnswerReader, notices: list[str]
) -> tuple[list[list[ReadAnswer]], str]:
    """Return the answers that the reader marks in each text, and the name of the reader."""
    if rest := unread(reader, question):
        first_words = " ".join(rest.split()[:QUOTED])
        notices.append(
            f"the reader did not read the end of the question, from {first_words!r} on. Fix: ask a shorter question."
        )
    if isinstance(reader, NotifyingReader):
        answers, reader_notices, name = reader.read_with_notices(question, texts, BEST)
        notices += reader_notices
        return answers, name
    return reader.read(question, texts, BEST) if texts else [], reader.name


def _best_candidates(
    paragraphs: Sequence[Paragraph], answers_by_paragraph: Sequence[Sequence[ReadAnswer]]
) -> list[tuple[PassageToRead, Span, float]]:
    """Return candidate answers that do not overlap, with their confidence, the surest first.

    Within a paragraph, words other than those of the surest answer are right only if the surest answer is wrong. Their
    confidence is reduced accordingly.
    """
    candidates = []
    for paragraph, answers in zip(paragraphs, answers_by_paragraph, strict=True):
        surest = max(answers, key=lambda answer: answer.confidence, default=ReadAnswer(Span(0, 0), 0.0))
        surest_words = normalised(surest.span.of(paragraph.text))
        for answer in answers:
            item, span = paragraph.locate(answer.span)
            span = span.trimmed(item.document.text)
            share = 1.0 if normalised(answer.span.of(paragraph.text)) == surest_words else 1 - surest.confidence
            if span.begin < span.end:
                candidates.append((item, span, share * answer.confidence))
    spans_by_document: dict[int, list[Span]] = {}
    best: list[tuple[PassageToRead, Span, float]] = []
    for item, span, confidence in sorted(candidates, key=lambda candidate: -candidate[2]):
        spans = spans_by_document.setdefault(id(item.document), [])
        if len(best) < MAX_CANDIDATES and not any(_overlap(span, other) for other in spans):
            spans.append(span)
            best.append((item, span, confidence))
    return best


def _overlap(first: Span, second: Span) -> bool:
    return first.begin < second.end and second.begin < first.end


def merged(answers: Iterable[Answer], threshold: float) -> list[Answer]:
    """Merge equal answers: the first one stays, with the places of the others.

    Answers are equal if they have the same words, are about the same patient, and agree in whether they are negated,
    hypothetical, or about a relative. A place counts only if the answer there reaches the threshold: 40 mg of another
    drug is not a place of this dose.
    """
    groups: dict[tuple[str, str, tuple[str, ...]], list[Answer]] = {}
    for answer in answers:
        patient = str(answer.metadata.get("patient") or "")
        flags = tuple(flag for flag in DISTINCTIVE_FLAGS if flag in answer.context)
        groups.setdefault((normalised(answer.text), patient, flags), []).append(answer)
    return [
        replace(first, places=tuple(_place(other) for other in others if other.confidence >= threshold))
        for first, *others in groups.values()
    ]


def normalised(text: str) -> str:
    """Return the words of an answer in the form in which answers compare.

    Punctuation inside stays, because 1.5 mg is not 15 mg.

    >>> normalised('"Lasix  40 MG."') == normalised("lasix 40 mg"), normalised(".5 mg")
    (True, '.5 mg')
    """
    words = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    return words.lstrip(AROUND).rstrip(AFTER) or words


def _place(answer: Answer) -> Place:
    return Place(answer.document, answer.span, answer.text, answer.headings, answer.confidence, answer.context)


class _AnswerBuilder:
    """Adds sentence, heading and context to the spans of answers."""

    def __init__(self, gazetteer: Gazetteer) -> None:
        self._gazetteer = gazetteer
        self._sections: dict[int, list[Section]] = {}

    def answer(self, item: PassageToRead, span: Span, confidence: float) -> Answer:
        """Return the answer at a span of a passage's document."""
        document, passage = item.document, item.passage
        sentences = [sentence for sentence in passage.sentences if _overlap(sentence, span)]
        sentence_range = Span(sentences[0].begin, sentences[-1].end) if sentences else passage.span
        heading = self._heading(document, span)
        cues = self._context(document, span, sentences or [sentence_range], heading)
        path = tuple(heading.split(" | ")) if heading else ()
        return Answer(document, span, confidence, passage.span, sentence_range, path, cues)

    def _heading(self, document: Document, span: Span) -> str | None:
        """Return the heading of the innermost section of a span; a passage may contain several sections."""
        if id(document) not in self._sections:
            self._sections[id(document)] = sections(document)
        candidates = reversed(self._sections[id(document)])
        return next((section.heading for section in candidates if section.span.begin <= span.begin), None)

    def _context(
        self, document: Document, span: Span, sentences: Sequence[Span], heading: str | None
    ) -> Mapping[str, Cue]:
        """Return the context of an answer: its own, and the context that all its mentions share.

        In "she denies chest pain", the answer inherits the negation of its mention. A cue late in a long answer applies
        to a part of the answer only, and is left out.
        """

        def context_of(target: Span) -> Mapping[str, Cue]:
            sentence = next((s for s in reversed(sentences) if s.begin <= target.begin), sentences[0])
            return context(document.text, target, heading, sentence)

        names = [name.span for name in self._gazetteer.find(document[span])]
        contexts = [context_of(Span(span.begin + name.begin, span.begin + name.end)) for name in names]
        cues = {}
        for flag, cue in contexts[0].items() if contexts else ():
            first_mention = span.begin + names[0].begin
            before = document.text[span.begin : min(first_mention, cue.span.begin) if cue.span else first_mention]
            if len(before.split()) <= OPENING and all(flag in other for other in contexts):
                cues[flag] = cue
        cues |= context_of(span)
        return {flag: cues[flag] for flag in FLAGS if flag in cues}

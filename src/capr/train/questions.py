"""Questions put to the paragraphs of their reports: what a reader learns from, and what it is judged by.

Reference: Lanz and Pecina, Paragraph Retrieval for Enhanced Question Answering in Clinical Documents, 2024, section 4.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from capr.documents import Document, Span
from capr.search.parse import stopwords
from capr.segment import uniform
from capr.supervise.reports import Asked, Report

Cut = Callable[[Document], list[Span]]
LENGTHS = (300, 1500)  # characters of a paragraph
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Source:
    """Reports of one kind.

    Attributes:
        reports: with their questions.
        weight: how often each question is drawn in an epoch; 0.5 for half of them, others each time.
        held: whether some of the reports are kept to validate on.
        name: for the model card.
    """

    reports: Sequence[Report]
    weight: float = 1.0
    held: bool = True
    name: str = ""

    @property
    def questions(self) -> int:
        """How many there are."""
        return sum(len(report.questions) for report in self.reports)


@dataclass(frozen=True, slots=True)
class Posed:
    """A question that is put to a paragraph.

    Attributes:
        question: its text.
        document: that has the paragraph.
        paragraph: a range of the document.
        answers: ranges of the paragraph's own text; none if it does not answer.
    """

    question: str
    document: Document
    paragraph: Span
    answers: tuple[Span, ...]

    @property
    def text(self) -> str:
        """Of the paragraph."""
        return self.document[self.paragraph]

    @property
    def golds(self) -> list[str]:
        """The answers themselves."""
        return [answer.of(self.text) for answer in self.answers]


def split(sources: Sequence[Source], share: float, seed: int) -> tuple[list[Source], list[Source]]:
    """Two parts that have no report in common: for training, and about a share of the reports to validate on."""
    learn, held = [], []
    for source in sources:
        kept = {r.document.id for r in source.reports if source.held and _fraction(f"{seed} {r.document.id}") < share}
        learn.append(replace(source, reports=[r for r in source.reports if r.document.id not in kept]))
        held.append(replace(source, reports=[r for r in source.reports if r.document.id in kept]))
    return learn, held


def _fraction(key: str) -> float:
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:6]) / 2**48


def posed(
    sources: Sequence[Source],
    seed: str,
    cut: Cut | None = None,
    lengths: tuple[int, int] = LENGTHS,
    unanswerable: float = 1.0,
    alike: float = 0.0,
) -> list[Posed]:
    """The examples of an epoch, shuffled.

    Every question is put to each paragraph that answers it and, as often, to one of the same report that does not.

    Args:
        sources: the reports.
        seed: of all that is drawn.
        cut: a report into paragraphs; if None, into uniform ones whose average length is drawn for each report.
        lengths: the shortest and the longest of these averages.
        unanswerable: share of the questions without an answer that are put to a paragraph.
        alike: how often the paragraph that does not answer is the one with most words of the question, instead of any.
    """
    found: list[Posed] = []
    for number, source in enumerate(sources):
        for turn in range(-int(-source.weight // 1)):
            share = min(1.0, source.weight - turn)
            for report in source.reports:
                draw = random.Random(f"{seed} {number} {turn} {report.document.id}")
                questions = [asked for asked in report.questions if asked.text.strip()]
                questions = [asked for asked in questions if share == 1 or draw.random() < share]
                if questions:
                    paragraphs = cut_up(report, cut, draw.randint(*lengths))
                    found += examples(report.document, questions, paragraphs, draw, unanswerable, alike)
    random.Random(seed).shuffle(found)
    return found


def cut_up(report: Report, cut: Cut | None, length: int) -> list[Span]:
    """The paragraphs of a report that hold more than blanks; uniform ones cut no answer if that can be."""
    document = report.document
    answers = sorted({answer for asked in report.questions for answer in asked.answers})
    paragraphs = uniform(document.text, length, answers) if cut is None else cut(document)
    return [span for span in paragraphs if document[span].strip()]


def examples(
    document: Document, questions: Sequence[Asked], paragraphs: Sequence[Span], draw: random.Random,
    unanswerable: float, alike: float,
) -> Iterator[Posed]:  # fmt: skip
    """The questions of one report with the paragraphs that answer them and as many that do not."""
    for asked in questions:
        put = put_to_all(document, asked, paragraphs)
        right, wrong = ([one for one in put if bool(one.answers) is has] for has in (True, False))
        yield from right
        if right and wrong:
            yield from (_drawn(wrong, draw, alike) for _ in right)
        elif wrong and not asked.answers and draw.random() < unanswerable:
            yield _drawn(wrong, draw, alike)


def _drawn(wrong: Sequence[Posed], draw: random.Random, alike: float) -> Posed:
    """One of the paragraphs that do not answer a question: any, or the one that has most of its words."""
    if draw.random() >= alike:
        return draw.choice(wrong)
    asked = _words(wrong[0].question)
    return max(wrong, key=lambda one: len(asked & _words(one.text)))


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    return frozenset(WORD.findall(text.lower())) - stopwords()


def put_to_all(document: Document, asked: Asked, paragraphs: Sequence[Span]) -> list[Posed]:
    """A question with each paragraph; not with those that have a part of an answer but no whole one."""
    found = []
    for paragraph in paragraphs:
        inside = [answer for answer in asked.answers if paragraph.covers(answer) and answer.begin < answer.end]
        touched = any(answer.begin < paragraph.end and paragraph.begin < answer.end for answer in asked.answers)
        if inside or not touched:
            own = (Span(answer.begin - paragraph.begin, answer.end - paragraph.begin) for answer in inside)
            found.append(Posed(asked.text, document, paragraph, tuple(own)))
    return found


def whole_reports(
    sources: Sequence[Source], questions: int, paragraphs: int, cut: Cut | None, length: int, seed: str
) -> list[list[Posed]]:
    """So many questions, each with so many paragraphs of its report at most, those that answer it among them."""
    draw = random.Random(seed)
    reports = [report for source in sources for report in source.reports]
    pool = [(report, asked) for report in reports for asked in report.questions if asked.text.strip()]
    found = []
    for report, asked in draw.sample(pool, min(questions, len(pool))):
        put = put_to_all(report.document, asked, cut_up(report, cut, length))
        right, wrong = ([one for one in put if bool(one.answers) is has] for has in (True, False))
        right = right[:paragraphs]
        some = [*right, *draw.sample(wrong, min(len(wrong), paragraphs - len(right)))]
        if some and bool(right) is bool(asked.answers):
            found.append(some)
    return found

"""Questions paired with the paragraphs of their reports: the data that readers learn from and are measured on.

Reference: Lanz and Pecina, Paragraph Retrieval for Enhanced Question Answering in Clinical Documents, 2024, section 4.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from capr.documents import Document, Span
from capr.segment import uniform
from capr.supervise.reports import Report, ReportQuestion
from capr.supervise.split import held_out_ids
from capr.text.stopwords import stopwords

Cut = Callable[[Document], list[Span]]
LENGTHS = (300, 1500)  # characters of a paragraph
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class WeightedReports:
    """Reports of one kind.

    Attributes:
        reports: the reports with their questions.
        weight: how often to draw each question in an epoch; 0.5 draws half of them, and others in each epoch.
        held: whether `split` may hold out some of the reports for validation.
        name: the name for the model card.
    """

    reports: Sequence[Report]
    weight: float = 1.0
    held: bool = True
    name: str = ""

    @property
    def questions(self) -> int:
        """The number of questions."""
        return sum(len(report.questions) for report in self.reports)


@dataclass(frozen=True, slots=True)
class ParagraphQuestion:
    """A question paired with a paragraph.

    Attributes:
        question: the text of the question.
        document: the document that contains the paragraph.
        paragraph: the span of the paragraph in the document.
        answers: spans in the paragraph's own text; none if the paragraph does not answer.
    """

    question: str
    document: Document
    paragraph: Span
    answers: tuple[Span, ...]

    @property
    def text(self) -> str:
        """The text of the paragraph."""
        return self.document[self.paragraph]

    @property
    def gold_answers(self) -> list[str]:
        """The texts of the answers."""
        return [answer.of(self.text) for answer in self.answers]


def split(
    sources: Sequence[WeightedReports], share: float, seed: int
) -> tuple[list[WeightedReports], list[WeightedReports]]:
    """Split by reports: one part for training, and about a share of the reports for validation.

    At least one report with an answer is held out (`capr.supervise.split.held_out_ids`).
    """
    reports = [report for source in sources if source.held for report in source.reports]
    answered = {report.document.id for report in reports if any(question.answers for question in report.questions)}
    all_held_ids = held_out_ids({report.document.id for report in reports}, answered, share, seed)
    training, validation = [], []
    for source in sources:
        held_ids = all_held_ids if source.held else set()
        training.append(
            replace(source, reports=[report for report in source.reports if report.document.id not in held_ids])
        )
        validation.append(
            replace(source, reports=[report for report in source.reports if report.document.id in held_ids])
        )
    return training, validation


def draw_questions(
    sources: Sequence[WeightedReports],
    seed: str,
    cut: Cut | None = None,
    lengths: tuple[int, int] = LENGTHS,
    unanswerable: float = 1.0,
    hard_negative_share: float = 0.0,
) -> list[ParagraphQuestion]:
    """Return the examples of an epoch, shuffled.

    Each question is paired with every paragraph that answers it, and with equally many paragraphs of the same report
    that do not.

    Args:
        sources: the reports.
        seed: the seed of all random choices.
        cut: cuts a report into paragraphs. If None, paragraphs are uniform, and each report draws their average length.
        lengths: the shortest and the longest average length.
        unanswerable: the share of the questions without an answer that are paired with a paragraph.
        hard_negative_share: how often the paragraph without the answer is the one that shares most words with the
            question. Otherwise it is random.
    """
    groups = draw_question_groups(sources, seed, cut, lengths, unanswerable, hard_negative_share)
    pairs = [pair for group in groups for pair in group]
    random.Random(seed).shuffle(pairs)
    return pairs


def draw_question_groups(
    sources: Sequence[WeightedReports],
    seed: str,
    cut: Cut | None = None,
    lengths: tuple[int, int] = LENGTHS,
    unanswerable: float = 1.0,
    hard_negative_share: float = 0.0,
    negative_paragraphs: int = 0,
) -> list[list[ParagraphQuestion]]:
    """Return the examples of an epoch by question, in the order of the sources.

    With `negative_paragraphs`, a question has that many paragraphs that do not answer, or all if there are fewer;
    otherwise as many as paragraphs that answer. The other arguments are the same as for `draw_questions`.
    """
    groups: list[list[ParagraphQuestion]] = []
    for number, source in enumerate(sources):
        for repetition in range(-int(-source.weight // 1)):
            share = min(1.0, source.weight - repetition)
            for report in source.reports:
                rng = random.Random(f"{seed} {number} {repetition} {report.document.id}")
                questions = [question for question in report.questions if question.text.strip()]
                questions = [question for question in questions if share == 1 or rng.random() < share]
                if questions:
                    paragraphs = cut_report(report, cut, rng.randint(*lengths))
                    options = (unanswerable, hard_negative_share, negative_paragraphs)
                    groups += question_groups(report.document, questions, paragraphs, rng, *options)
    return groups


def cut_report(report: Report, cut: Cut | None, length: int) -> list[Span]:
    """Cut a report into paragraphs, without blank ones; uniform paragraphs cut no answer if they can avoid it."""
    document = report.document
    answers = sorted({answer for question in report.questions for answer in question.answers})
    paragraphs = uniform(document.text, length, answers) if cut is None else cut(document)
    return [span for span in paragraphs if document[span].strip()]


def question_groups(
    document: Document,
    questions: Sequence[ReportQuestion],
    paragraphs: Sequence[Span],
    rng: random.Random,
    unanswerable: float,
    hard_negative_share: float,
    negative_paragraphs: int = 0,
) -> Iterator[list[ParagraphQuestion]]:
    """Yield for each question of a report the paragraphs that answer it, and some that do not."""
    for question in questions:
        pairs = pair_with_paragraphs(document, question, paragraphs)
        answering, not_answering = (
            [pair for pair in pairs if bool(pair.answers) is answered] for answered in (True, False)
        )
        if not answering and (question.answers or not not_answering or rng.random() >= unanswerable):
            continue
        if not negative_paragraphs:
            drawn = (
                _draw_other(not_answering, rng, hard_negative_share) for _ in answering or (None,) if not_answering
            )
            yield [*answering, *drawn]
        else:
            first = [_draw_other(not_answering, rng, hard_negative_share)] if not_answering else []
            sample = rng.sample(not_answering, min(negative_paragraphs, len(not_answering)))
            yield [*answering, *[*first, *(pair for pair in sample if pair not in first)][:negative_paragraphs]]


def _draw_other(
    candidates: Sequence[ParagraphQuestion], rng: random.Random, hard_negative_share: float
) -> ParagraphQuestion:
    """Draw a paragraph that does not answer: a random one, or the one with most words of the question."""
    if rng.random() >= hard_negative_share:
        return rng.choice(candidates)
    question_words = _words(candidates[0].question)
    return max(candidates, key=lambda candidate: len(question_words & _words(candidate.text)))


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    return frozenset(WORD.findall(text.lower())) - stopwords()


def pair_with_paragraphs(
    document: Document, question: ReportQuestion, paragraphs: Sequence[Span]
) -> list[ParagraphQuestion]:
    """Pair a question with each paragraph, except those that contain a part of an answer but no whole one."""
    pairs = []
    for paragraph in paragraphs:
        answers = [answer for answer in question.answers if paragraph.covers(answer) and answer.begin < answer.end]
        overlaps = any(answer.begin < paragraph.end and paragraph.begin < answer.end for answer in question.answers)
        if answers or not overlaps:
            spans = (Span(answer.begin - paragraph.begin, answer.end - paragraph.begin) for answer in answers)
            pairs.append(ParagraphQuestion(question.text, document, paragraph, tuple(spans)))
    return pairs


def whole_reports(
    sources: Sequence[WeightedReports], questions: int, paragraphs: int, cut: Cut | None, length: int, seed: str
) -> list[list[ParagraphQuestion]]:
    """Draw questions, and pair each with up to `paragraphs` paragraphs of its report.

    The paragraphs that answer come first.
    """
    rng = random.Random(seed)
    reports = [report for source in sources for report in source.reports]
    report_questions = [
        (report, question) for report in reports for question in report.questions if question.text.strip()
    ]
    groups = []
    for report, question in rng.sample(report_questions, min(questions, len(report_questions))):
        pairs = pair_with_paragraphs(report.document, question, cut_report(report, cut, length))
        answering, not_answering = (
            [pair for pair in pairs if bool(pair.answers) is answered] for answered in (True, False)
        )
        answering = answering[:paragraphs]
        group = [*answering, *rng.sample(not_answering, min(len(not_answering), paragraphs - len(answering)))]
        if group and bool(answering) is bool(question.answers):
            groups.append(group)
    return groups

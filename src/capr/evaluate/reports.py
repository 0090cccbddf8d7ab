"""Measure how a reader answers questions about whole reports, and whether it knows when a report has no answer.

Reference: Lanz and Pecina, Paragraph Retrieval for Enhanced Question Answering in Clinical Documents, 2024. The paper
has three tasks: paragraph retrieval (do the first k paragraphs include a gold one?), Oracle-QA (the answer from the
most confident gold paragraph) and PR-QA (the answer from the most confident paragraph of all). Exact match and F1
compare with all gold answers of the report.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from capr.documents import Span
from capr.measures.answers import calibration_error, exact_match, f1
from capr.runtime.reader import AnswerReader, ReadAnswer
from capr.segment.paragraphs import Paragraphs, paragraph_index
from capr.supervise.reports import Report, ReportQuestion

RANKS = (1, 2, 3)
RIGHT = 0.5  # minimum F1 of a right answer, for measures that know only right and wrong


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one question.

    Attributes:
        report: the id of the report.
        question: the id of the question.
        answerable: whether the report answers the question.
        rank: the rank of the first gold paragraph, from 1; 0 if there is none.
        span: the span of the PR-QA answer in the report's text; None if no paragraph has words.
        answer: the words of the PR-QA answer.
        confidence: the confidence of the PR-QA answer.
        exact: the exact match of the PR-QA answer; 0 for an unanswerable question.
        f1: the F1 of the PR-QA answer; 0 for an unanswerable question.
        oracle_exact: the exact match of the Oracle-QA answer.
        oracle_f1: the F1 of the Oracle-QA answer.
    """

    report: str
    question: str
    answerable: bool
    rank: int
    span: Span | None
    answer: str
    confidence: float
    exact: float
    f1: float
    oracle_exact: float
    oracle_f1: float

    @property
    def right(self) -> bool:
        """Whether the question is answerable and the F1 of the answer is at least `RIGHT`."""
        return self.answerable and self.f1 >= RIGHT

    def as_json(self) -> dict[str, Any]:
        """Return the fields as a dictionary for JSON."""
        return {
            "report": self.report,
            "question": self.question,
            "answerable": self.answerable,
            "rank": self.rank,
            "begin": self.span.begin if self.span else None,
            "end": self.span.end if self.span else None,
            "answer": self.answer,
            "confidence": self.confidence,
            "measures": {
                "PR-QA EM": self.exact,
                "PR-QA F1": self.f1,
                "Oracle-QA EM": self.oracle_exact,
                "Oracle-QA F1": self.oracle_f1,
            },
        }


@dataclass(frozen=True)
class ReaderResult:
    """The outcomes of a reader on reports that are cut in one way.

    Attributes:
        reader: the name of the reader.
        cut: the way to cut paragraphs: `passage`, `heading`, `uniform` or `whole`.
        wanted: the target length of paragraphs in characters; 0 for none.
        length: the mean length of the paragraphs in characters.
        threshold: the minimum confidence of an answer.
        outcomes: the outcomes of all questions.
    """

    reader: str
    cut: str
    wanted: int
    length: float
    threshold: float
    outcomes: Sequence[Outcome]

    @property
    def measures(self) -> dict[str, float]:
        """The measures by name, from 0 to 1.

        `answered` is the share of answerable questions with a confident answer, `refused` the share of unanswerable
        questions without one. Without answerable or unanswerable questions, their measures are missing. `ECE` is the
        expected calibration error.
        """
        answerable = [outcome for outcome in self.outcomes if outcome.answerable]
        unanswerable = [outcome for outcome in self.outcomes if not outcome.answerable]
        measures: dict[str, float] = {}
        if answerable:
            measures |= {f"P@{k}": _mean(0 < outcome.rank <= k for outcome in answerable) for k in RANKS}
            measures |= {
                "Oracle-QA EM": _mean(outcome.oracle_exact for outcome in answerable),
                "Oracle-QA F1": _mean(outcome.oracle_f1 for outcome in answerable),
                "PR-QA EM": _mean(outcome.exact for outcome in answerable),
                "PR-QA F1": _mean(outcome.f1 for outcome in answerable),
                "answered": _mean(outcome.confidence >= self.threshold for outcome in answerable),
            }
        if unanswerable:
            measures["refused"] = _mean(outcome.confidence < self.threshold for outcome in unanswerable)
        return measures | {"ECE": calibration_error(self.confidences)}

    @property
    def confidences(self) -> list[tuple[float, bool]]:
        """The confidence of every answer, and whether the answer is right."""
        return [(outcome.confidence, outcome.right) for outcome in self.outcomes]

    def as_json(self) -> dict[str, Any]:
        """Return the fields as a dictionary for JSON."""
        count = sum(outcome.answerable for outcome in self.outcomes)
        return {
            "model": self.reader,
            "cut": self.cut,
            "length": self.length,
            "threshold": self.threshold,
            "answerable": count,
            "unanswerable": len(self.outcomes) - count,
            "measures": self.measures,
        }


def measure(
    reader: AnswerReader,
    reports: Sequence[Report],
    paragraphs: Paragraphs,
    wanted: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> ReaderResult:
    """Measure a reader on every question of every report.

    As in the paper, paragraphs are cut with knowledge of the answers, so that no boundary splits an answer.

    Args:
        reader: the reader to measure.
        reports: the reports with questions.
        paragraphs: the way to cut paragraphs.
        wanted: the target length of paragraphs, which the result records.
        progress: a function that takes the number of questions done, and of all questions.
    """
    total = sum(len(report.questions) for report in reports)
    outcomes: list[Outcome] = []
    lengths: list[int] = []
    for report in reports:
        cut = paragraphs(report.document, [span for question in report.questions for span in question.answers])
        lengths += [span.end - span.begin for span in cut]
        texts = [report.document[span] for span in cut]
        for question in report.questions:
            best_answers = reader.read(question.text, texts) if texts else []
            outcomes.append(
                _outcome(report, question, cut, [answers[0] if answers else None for answers in best_answers])
            )
            progress(len(outcomes), total)
    return ReaderResult(reader.name, paragraphs.cut, wanted, _mean(lengths), reader.threshold, outcomes)


def _outcome(
    report: Report, question: ReportQuestion, cut: Sequence[Span], answers: Sequence[ReadAnswer | None]
) -> Outcome:
    """Return the outcome of the best answer of each paragraph; paragraphs of the same confidence keep their order."""
    order = sorted(range(len(cut)), key=lambda i: (-_confidence(answers[i]), i))
    gold_paragraphs = {paragraph_index(cut, span) for span in question.answers}
    gold_answers = [report.document[span] for span in question.answers]
    first_paragraph, best_gold = (
        next((i for i in order if i in choices), None) for choices in (range(len(cut)), gold_paragraphs)
    )
    span, oracle_span = (_answer_span(cut, answers, i) for i in (first_paragraph, best_gold))
    answer, oracle_answer = (report.document[answer_span] if answer_span else "" for answer_span in (span, oracle_span))
    return Outcome(
        report=report.document.id,
        question=question.id,
        answerable=bool(question.answers),
        rank=order.index(best_gold) + 1 if best_gold is not None else 0,
        span=span,
        answer=answer,
        confidence=max(0.0, _confidence(answers[first_paragraph]) if first_paragraph is not None else 0.0),
        exact=exact_match(answer, gold_answers),
        f1=f1(answer, gold_answers),
        oracle_exact=exact_match(oracle_answer, gold_answers),
        oracle_f1=f1(oracle_answer, gold_answers),
    )


def _confidence(answer: ReadAnswer | None) -> float:
    return -math.inf if answer is None else answer.confidence


def _answer_span(cut: Sequence[Span], answers: Sequence[ReadAnswer | None], paragraph: int | None) -> Span | None:
    """Return the span of a paragraph's answer in the text of the report."""
    answer = answers[paragraph] if paragraph is not None else None
    if paragraph is None or answer is None:
        return None
    begin = cut[paragraph].begin
    return Span(begin + answer.span.begin, begin + answer.span.end)


def over_lengths(
    readers: Sequence[AnswerReader],
    reports: Sequence[Report],
    lengths: Sequence[int],
    cuts: Sequence[str] = ("heading", "uniform"),
    counted: Sequence[Report] = (),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[ReaderResult]:
    """Measure every reader with every way to cut and every length, as in figures 2 and 6 of the paper.

    Args:
        readers: the readers, such as one family trained with several seeds.
        reports: the reports with questions.
        lengths: the mean lengths of paragraphs in characters.
        cuts: the ways to cut.
        counted: the reports whose heading counts give the threshold for each length; if empty, `reports`.
        progress: a function that takes the number of questions done, and of all questions.
    """
    documents = [report.document for report in counted or reports]
    settings = [(Paragraphs.of_length(cut, length, documents), length) for cut in cuts for length in lengths]
    question_count = sum(len(report.questions) for report in reports)
    total = question_count * len(settings) * len(readers)
    results: list[ReaderResult] = []
    for reader in readers:
        for paragraphs, length in settings:

            def report_progress(done: int, _: int, before: int = question_count * len(results)) -> None:
                progress(before + done, total)

            results.append(measure(reader, reports, paragraphs, length, report_progress))
    return results


def limited(reports: Iterable[Report], questions: int) -> list[Report]:
    """Return the first reports, with at most this number of questions in all; 0 for all."""
    first_reports: list[Report] = []
    remaining = questions or math.inf
    for report in reports:
        if remaining > 0 and report.questions:
            first_questions = report.questions[: int(min(remaining, len(report.questions)))]
            first_reports.append(replace(report, questions=first_questions))
            remaining -= len(first_questions)
    return first_reports


@dataclass(frozen=True)
class Spread:
    """The measures of several readers, such as one family with several seeds, on reports that are cut in one way.

    Attributes:
        cut: the way to cut paragraphs, as in `ReaderResult`.
        length: the mean length of the paragraphs in characters.
        readers: the names of the readers.
        mean: the mean of each measure.
        lowest: the lowest value of each measure.
        highest: the highest value of each measure.
    """

    cut: str
    length: float
    readers: tuple[str, ...]
    mean: Mapping[str, float]
    lowest: Mapping[str, float]
    highest: Mapping[str, float]

    def as_json(self) -> dict[str, Any]:
        """Return the fields as a dictionary for JSON."""
        measures = {"mean": self.mean, "lowest": self.lowest, "highest": self.highest}
        return {"models": list(self.readers), "cut": self.cut, "length": self.length, **measures}


def spreads(measured: Iterable[ReaderResult]) -> list[Spread]:
    """Return the spread of the readers' measures, for each way to cut and target length."""
    groups: dict[tuple[str, int], list[ReaderResult]] = {}
    for result in measured:
        groups.setdefault((result.cut, result.wanted), []).append(result)
    summaries = []
    for (cut, _), group in groups.items():
        measures = [result.measures for result in group]
        values = {name: [by_name[name] for by_name in measures] for name in measures[0]}
        mean, lowest, highest = (
            {name: aggregate(numbers) for name, numbers in values.items()} for aggregate in (_mean, min, max)
        )
        readers = tuple(result.reader for result in group)
        summaries.append(Spread(cut, group[0].length, readers, mean, lowest, highest))
    return sorted(summaries, key=lambda spread: (spread.cut, spread.length))


def _mean(values: Iterable[float]) -> float:
    numbers = [float(value) for value in values]
    return sum(numbers) / len(numbers) if numbers else 0.0

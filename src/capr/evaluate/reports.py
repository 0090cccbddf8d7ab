"""Answers in reports: find the paragraph, read the answer, or say that there is none.

Reference: Lanz and Pecina, Paragraph Retrieval for Enhanced Question Answering in Clinical Documents, 2024. Its three
tasks: paragraph retrieval (is a paragraph that answers among the first k?), Oracle-QA (the answer from the most
confident of the paragraphs that answer) and PR-QA (the answer from the most confident of all). Exact match and F1 count
all answers of the whole report.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from capr.documents import Span
from capr.evaluate.answers import calibration_error, exact_match, f1
from capr.search.reader import AnswerReader, Reading
from capr.segment.paragraphs import Paragraphs, holding
from capr.supervise.reports import Asked, Report

RANKS = (1, 2, 3)
RIGHT = 0.5  # an answer of at least that F1 counts as right, where right and wrong are all there is


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a question.

    Attributes:
        report, question: their ids.
        answerable: whether the report answers it.
        rank: of the first paragraph that answers, from 1; 0 if none does.
        span: of the report's text, the answer of PR-QA; None if no paragraph has words.
        answer: its words.
        confidence: in it.
        exact, f1: of that answer; 0 if there is none to be found.
        oracle_exact, oracle_f1: of the answer in the most confident paragraph that answers.
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
        """Whether the answer is right, more or less; none is where the report does not answer."""
        return self.answerable and self.f1 >= RIGHT

    def as_json(self) -> dict[str, Any]:
        """A plain dictionary."""
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
class Measured:
    """A reader measured on reports cut in one way.

    Attributes:
        reader: its name.
        cut: `passage`, `heading`, `uniform` or `whole`.
        wanted: the length of paragraphs that was asked for, in characters; 0 for none.
        length: their length on average.
        threshold: the confidence below which there is no answer.
        outcomes: of every question.
    """

    reader: str
    cut: str
    wanted: int
    length: float
    threshold: float
    outcomes: Sequence[Outcome]

    @property
    def measures(self) -> dict[str, float]:
        """By name, from 0 to 1.

        `answered` is the share of answerable questions with an answer of enough confidence, `refused` the share of
        unanswerable ones without; each is there only where there are such questions. `ECE` is the expected calibration
        error.
        """
        answerable = [outcome for outcome in self.outcomes if outcome.answerable]
        unanswerable = [outcome for outcome in self.outcomes if not outcome.answerable]
        found: dict[str, float] = {}
        if answerable:
            found |= {f"P@{k}": _mean(0 < one.rank <= k for one in answerable) for k in RANKS}
            found |= {
                "Oracle-QA EM": _mean(one.oracle_exact for one in answerable),
                "Oracle-QA F1": _mean(one.oracle_f1 for one in answerable),
                "PR-QA EM": _mean(one.exact for one in answerable),
                "PR-QA F1": _mean(one.f1 for one in answerable),
                "answered": _mean(one.confidence >= self.threshold for one in answerable),
            }
        if unanswerable:
            found["refused"] = _mean(one.confidence < self.threshold for one in unanswerable)
        return found | {"ECE": calibration_error(self.confidences)}

    @property
    def confidences(self) -> list[tuple[float, bool]]:
        """Of every answer its confidence, and whether it is right."""
        return [(outcome.confidence, outcome.right) for outcome in self.outcomes]

    def as_json(self) -> dict[str, Any]:
        """A plain dictionary."""
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
) -> Measured:
    """Asks every question of every report.

    Paragraphs are cut as in the paper: knowing the answers, so that none is cut in two.

    Args:
        reader: of answers.
        reports: with questions.
        paragraphs: the way to cut them.
        wanted: the length of paragraphs, to be remembered with the result.
        progress: called with how many questions are done, and how many there are.
    """
    total = sum(len(report.questions) for report in reports)
    outcomes: list[Outcome] = []
    lengths: list[int] = []
    for report in reports:
        cut = paragraphs(report.document, [span for asked in report.questions for span in asked.answers])
        lengths += [span.end - span.begin for span in cut]
        texts = [report.document[span] for span in cut]
        for asked in report.questions:
            read = reader.read(asked.text, texts) if texts else []
            outcomes.append(_outcome(report, asked, cut, [one[0] if one else None for one in read]))
            progress(len(outcomes), total)
    return Measured(reader.name, paragraphs.cut, wanted, _mean(lengths), reader.threshold, outcomes)


def _outcome(report: Report, asked: Asked, cut: Sequence[Span], readings: Sequence[Reading | None]) -> Outcome:
    """What the best reading of each paragraph comes to; paragraphs of the same confidence stay in order."""
    order = sorted(range(len(cut)), key=lambda i: (-_confidence(readings[i]), i))
    gold = {holding(cut, span) for span in asked.answers}
    answers = [report.document[span] for span in asked.answers]
    first, best = (next((i for i in order if i in among), None) for among in (range(len(cut)), gold))
    span, oracle = (_place(cut, readings, i) for i in (first, best))
    words, oracle_words = (report.document[one] if one else "" for one in (span, oracle))
    return Outcome(
        report=report.document.id,
        question=asked.id,
        answerable=bool(asked.answers),
        rank=order.index(best) + 1 if best is not None else 0,
        span=span,
        answer=words,
        confidence=max(0.0, _confidence(readings[first]) if first is not None else 0.0),
        exact=exact_match(words, answers),
        f1=f1(words, answers),
        oracle_exact=exact_match(oracle_words, answers),
        oracle_f1=f1(oracle_words, answers),
    )


def _confidence(reading: Reading | None) -> float:
    return -math.inf if reading is None else reading.confidence


def _place(cut: Sequence[Span], readings: Sequence[Reading | None], number: int | None) -> Span | None:
    """Where in the report a paragraph's reading stands."""
    reading = readings[number] if number is not None else None
    if number is None or reading is None:
        return None
    begin = cut[number].begin
    return Span(begin + reading.span.begin, begin + reading.span.end)


def over_lengths(
    readers: Sequence[AnswerReader],
    reports: Sequence[Report],
    lengths: Sequence[int],
    cuts: Sequence[str] = ("heading", "uniform"),
    counted: Sequence[Report] = (),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Measured]:
    """The paper's figures 2 and 6: every reader, both ways of cutting, a range of lengths.

    Args:
        readers: such as one recipe trained with several seeds.
        reports: with questions.
        lengths: of paragraphs, on average, in characters.
        cuts: ways of cutting.
        counted: whose headings are counted to find the threshold of each length; the reports themselves if empty.
        progress: called with how many questions are done, and how many there are.
    """
    documents = [report.document for report in counted or reports]
    ways = [(Paragraphs.of_length(cut, length, documents), length) for cut in cuts for length in lengths]
    asked = sum(len(report.questions) for report in reports)
    total = asked * len(ways) * len(readers)
    found: list[Measured] = []
    for reader in readers:
        for way, length in ways:
            before = asked * len(found)
            found.append(measure(reader, reports, way, length, lambda done, _, b=before: progress(b + done, total)))  # type: ignore[misc]
    return found


def limited(reports: Iterable[Report], questions: int) -> list[Report]:
    """The first reports with so many questions in all; 0 for all."""
    found: list[Report] = []
    left = questions or math.inf
    for report in reports:
        if left > 0 and report.questions:
            kept = report.questions[: int(min(left, len(report.questions)))]
            found.append(replace(report, questions=kept))
            left -= len(kept)
    return found


@dataclass(frozen=True)
class Spread:
    """Readers of one recipe, such as several seeds, measured on reports cut in one way.

    Attributes:
        cut, length: as those of `Measured`.
        readers: their names.
        mean, lowest, highest: of each measure.
    """

    cut: str
    length: float
    readers: tuple[str, ...]
    mean: Mapping[str, float]
    lowest: Mapping[str, float]
    highest: Mapping[str, float]

    def as_json(self) -> dict[str, Any]:
        """A plain dictionary."""
        measures = {"mean": self.mean, "lowest": self.lowest, "highest": self.highest}
        return {"models": list(self.readers), "cut": self.cut, "length": self.length, **measures}


def spreads(measured: Iterable[Measured]) -> list[Spread]:
    """What readers have in common, for each way of cutting by length."""
    groups: dict[tuple[str, int], list[Measured]] = {}
    for one in measured:
        groups.setdefault((one.cut, one.wanted), []).append(one)
    found = []
    for (cut, _), group in groups.items():
        each = [one.measures for one in group]
        values = {name: [measures[name] for measures in each] for name in each[0]}
        mean, lowest, highest = (
            {name: of(some) for name, some in values.items()} for of in (_mean, min, max)
        )  # fmt: skip
        readers = tuple(one.reader for one in group)
        found.append(Spread(cut, group[0].length, readers, mean, lowest, highest))
    return sorted(found, key=lambda one: (one.cut, one.length))


def _mean(values: Iterable[float]) -> float:
    listed = [float(value) for value in values]
    return sum(listed) / len(listed) if listed else 0.0

"""How well answers are cut out of documents whose passage boundaries are hidden.

Each query is asked of the documents of its candidates; one run of sentences is the answer, in the document that it
scores best in, and in the one that has the gold passage if that were known. It is compared with that passage by F1 of
characters. Runs of sentences stand beside fixed windows and beside sections by the headings that the text shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from capr.documents import Document, Span
from capr.evaluate.discourse import inside
from capr.evaluate.scorers import Progress
from capr.evaluate.task import Asked, Task
from capr.index.discourse import Discourse
from capr.index.onnx import Floats
from capr.search.runs import Run, answer, span_of
from capr.segment import sections

WINDOW = 10  # sentences, about as many as a passage of the tests has
WAYS = ("runs", "windows", "headings")


@dataclass(frozen=True)
class Cut:
    """F1 of characters of one way to cut: over all candidate documents, and in the one that answers."""

    way: str
    anywhere: float
    in_document: float


def hidden(task: Task, model: Discourse, progress: Progress = lambda done, total: None) -> list[Cut]:
    """The means over all queries, for each way."""
    read, cuts = {}, {}
    total = len(task.documents) + len(task.asked)
    for number, (id, document) in enumerate(task.documents.items(), 1):
        read[id] = model.sentences(document)
        cuts[id] = _by_headings(document, read[id][0])
        progress(number, total)
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for number, asked in enumerate(task.asked, 1):
        query = model.query(asked.entity, asked.aspect)
        documents = dict.fromkeys(task.spans[id][0] for id in asked.candidates or task.passages)
        scores = {id: read[id][1] @ query for id in documents}
        for way in WAYS:
            answers = {}
            for id, some in scores.items():
                if way == "runs":
                    answers[id] = answer(some.tolist(), model.threshold)
                else:
                    answers[id] = best_of(cuts[id] if way == "headings" else _windows(len(some)), some)
            first = max(answers, key=lambda id: answers[id].score)
            spans = {id: span_of(read[id][0], run) for id, run in answers.items()}
            gold = {task.spans[id][0] for id in asked.relevant}
            known = max((f1_of(asked, task, id, spans[id]) for id in gold if id in spans), default=0.0)
            found[way].append((f1_of(asked, task, first, spans[first]), known))
        progress(len(read) + number, total)
    return [Cut(way, *(float(value) for value in np.mean(found[way], 0))) for way in WAYS]


def best_of(cuts: Sequence[tuple[int, int]], scores: Floats) -> Run:
    """The cut whose sentences score best on average."""
    runs = [Run(first, last, float(scores[first:last].mean())) for first, last in cuts if last > first]
    return max(runs, key=lambda run: run.score, default=Run(0, 0, float("-inf")))


def _windows(count: int) -> list[tuple[int, int]]:
    """Windows that overlap by half."""
    begins = range(0, max(1, count - WINDOW // 2), WINDOW // 2)
    return [(begin, min(count, begin + WINDOW)) for begin in begins]


def _by_headings(document: Document, spans: Sequence[Span]) -> list[tuple[int, int]]:
    """Sections by the headings that the text itself shows."""
    bare = replace(document, annotations=())
    return [inside(spans, section.span) for section in sections(bare)] if spans else []


def f1_of(asked: Asked, task: Task, document: str, answer: Span) -> float:
    """The best F1 of an answer with a passage of its document that answers; 0 if there is none."""
    golds = [task.spans[id] for id in asked.relevant]
    return max((f1(answer, span.trimmed(task.documents[id].text)) for id, span in golds if id == document), default=0.0)


def f1(one: Span, other: Span) -> float:
    """F1 of the characters of two ranges.

    >>> f1(Span(0, 10), Span(5, 15)), f1(Span(0, 5), Span(5, 9))
    (0.5, 0.0)
    """
    common = max(0, min(one.end, other.end) - max(one.begin, other.begin))
    return 2 * common / max(1, (one.end - one.begin) + (other.end - other.begin))

"""Measure how well a discourse model finds answers in documents when the passage boundaries are hidden.

The model answers each query with one run of sentences: from the best of all candidate documents, and from the document
with the gold passage. The measure is the F1 of characters between the run and the gold passage. Two other ways to
cut serve as a comparison: fixed windows, and sections by the headings in the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from capr.documents import Document, Span
from capr.evaluate.discourse import inside
from capr.evaluate.task import Progress, Task, TaskQuery
from capr.runtime.discourse import Discourse
from capr.runtime.onnx import Floats
from capr.runtime.sentence_runs import Run, answer, span_of
from capr.segment import sections

WINDOW = 10  # sentences, about the mean length of a passage of the tests
WAYS = ("runs", "windows", "headings")


@dataclass(frozen=True)
class Cut:
    """F1 of characters of one way to cut: over all candidate documents, and in the document that answers."""

    way: str
    anywhere: float
    in_document: float


def measure_cuts(task: Task, model: Discourse, progress: Progress = lambda done, total: None) -> list[Cut]:
    """Return the mean F1 over all queries for each way to cut."""
    sentence_vectors, cuts = {}, {}
    total = len(task.documents) + len(task.queries)
    for number, (id, document) in enumerate(task.documents.items(), 1):
        sentence_vectors[id] = model.sentences(document)
        cuts[id] = _by_headings(document, sentence_vectors[id][0])
        progress(number, total)
    f1_by_way: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for number, query in enumerate(task.queries, 1):
        query_vector = model.query(query.entity, query.aspect)
        documents = dict.fromkeys(task.spans[id][0] for id in query.candidates or task.passages)
        scores = {id: sentence_vectors[id][1] @ query_vector for id in documents}
        for way in WAYS:
            answers = {}
            for id, sentence_scores in scores.items():
                if way == "runs":
                    answers[id] = answer(sentence_scores.tolist(), model.threshold)
                else:
                    answers[id] = best_run(
                        cuts[id] if way == "headings" else _windows(len(sentence_scores)), sentence_scores
                    )
            best = max(answers, key=lambda id: answers[id].score)
            spans = {id: span_of(sentence_vectors[id][0], run) for id, run in answers.items()}
            gold = {task.spans[id][0] for id in query.relevant}
            in_document = max((best_f1(query, task, id, spans[id]) for id in gold if id in spans), default=0.0)
            f1_by_way[way].append((best_f1(query, task, best, spans[best]), in_document))
        progress(len(sentence_vectors) + number, total)
    return [Cut(way, *(float(value) for value in np.mean(f1_by_way[way], 0))) for way in WAYS]


def best_run(cuts: Sequence[tuple[int, int]], scores: Floats) -> Run:
    """Return the cut whose sentences have the highest mean score."""
    runs = [Run(first, last, float(scores[first:last].mean())) for first, last in cuts if last > first]
    return max(runs, key=lambda run: run.score, default=Run(0, 0, float("-inf")))


def _windows(count: int) -> list[tuple[int, int]]:
    """Return windows of sentences that overlap by half."""
    begins = range(0, max(1, count - WINDOW // 2), WINDOW // 2)
    return [(begin, min(count, begin + WINDOW)) for begin in begins]


def _by_headings(document: Document, spans: Sequence[Span]) -> list[tuple[int, int]]:
    """Return the sections that the headings in the text mark; annotated sections are ignored."""
    unannotated = replace(document, annotations=())
    return [inside(spans, section.span) for section in sections(unannotated)] if spans else []


def best_f1(query: TaskQuery, task: Task, document: str, answer: Span) -> float:
    """Return the best F1 of an answer with a relevant passage of its document; 0 if the document has none."""
    golds = [task.spans[id] for id in query.relevant]
    return max((f1(answer, span.trimmed(task.documents[id].text)) for id, span in golds if id == document), default=0.0)


def f1(answer: Span, gold: Span) -> float:
    """Return the F1 of the characters of two spans.

    >>> f1(Span(0, 10), Span(5, 15)), f1(Span(0, 5), Span(5, 9))
    (0.5, 0.0)
    """
    common = max(0, min(answer.end, gold.end) - max(answer.begin, gold.begin))
    return 2 * common / max(1, (answer.end - answer.begin) + (gold.end - gold.begin))

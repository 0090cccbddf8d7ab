"""Rank the candidates of a task with a discourse model, which reads each whole document once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from capr.documents import CaprError, Span
from capr.evaluate.task import Progress, Run, Task
from capr.runtime.discourse import Discourse
from capr.runtime.onnx import Floats


class DiscourseScorer:
    """Score a passage by the mean of the scores of its sentences (CDV, equation 14)."""

    def __init__(self, model: Discourse) -> None:
        self.model = model

    def run(self, task: Task, form: str, progress: Progress) -> Run:
        if form != "tuple":
            fix = "use --queries tuple"
            raise CaprError(f"a discourse model takes an entity and an aspect, not a question. Fix: {fix}.")
        if not task.documents:
            fix = "evaluate it with medquad or wikisection"
            raise CaprError(f"{task.name} has passages without their documents. Fix: {fix}.")
        total = len(task.documents) + len(task.queries)
        sentence_vectors = {}
        for number, (id, document) in enumerate(task.documents.items(), 1):
            sentence_vectors[id] = self.model.sentences(document)
            progress(number, total)
        vectors = {id: passage_vector(*sentence_vectors[document], span) for id, (document, span) in task.spans.items()}
        all_ids = list(task.passages)
        run: Run = {}
        for number, query in enumerate(task.queries, 1):
            query_vector = self.model.query(query.entity, query.aspect)
            ids = query.candidates or all_ids
            run[query.id] = {id: float(vectors[id] @ query_vector) for id in ids}
            progress(len(sentence_vectors) + number, total)
        return run


def passage_vector(spans: Sequence[Span], vectors: Floats, passage: Span) -> Floats:
    """Return the mean of the vectors of a passage's sentences.

    Its product with the vector of a query is the mean of the sentences' scores.
    """
    first, last = inside(spans, passage)
    mean: Floats = vectors[first:last].mean(0) if last > first else np.zeros(vectors.shape[1], np.float32)
    return mean


def inside(spans: Sequence[Span], passage: Span) -> tuple[int, int]:
    """Return the positions of a passage's first sentence and of the sentence after its last.

    The sentences of a passage begin in it; if none does, its sentence is the first that overlaps it.

    >>> inside([Span(0, 5), Span(6, 30), Span(31, 40)], Span(6, 40)), inside([Span(0, 30)], Span(10, 20))
    ((1, 3), (0, 1))
    """
    positions = [position for position, span in enumerate(spans) if passage.begin <= span.begin < passage.end]
    if positions:
        return positions[0], positions[-1] + 1
    overlapping = [
        position for position, span in enumerate(spans) if span.begin < passage.end and passage.begin < span.end
    ]
    return (overlapping[0], overlapping[0] + 1) if overlapping else (0, 0)

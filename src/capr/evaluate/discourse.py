"""How a discourse model ranks the candidates of a task: each document is read whole, once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from capr.documents import CaprError, Span
from capr.evaluate.scorers import Progress, Run
from capr.evaluate.task import Task
from capr.index.discourse import Discourse
from capr.index.onnx import Floats


class DiscourseScorer:
    """A passage's score is the mean of its sentences' (CDV, equation 14)."""

    def __init__(self, model: Discourse) -> None:
        self.model = model

    def run(self, task: Task, form: str, progress: Progress) -> Run:
        if form != "tuple":
            fix = "ask with --queries tuple"
            raise CaprError(f"a discourse model is asked for an entity and an aspect, not a question. Fix: {fix}.")
        if not task.documents:
            fix = "evaluate it with medquad or wikisection"
            raise CaprError(f"{task.name} has passages without their documents. Fix: {fix}.")
        total = len(task.documents) + len(task.asked)
        read = {}
        for number, (id, document) in enumerate(task.documents.items(), 1):
            read[id] = self.model.sentences(document)
            progress(number, total)
        vectors = {id: passage_vector(*read[document], span) for id, (document, span) in task.spans.items()}
        everything = list(task.passages)
        found: Run = {}
        for number, asked in enumerate(task.asked, 1):
            query = self.model.query(asked.entity, asked.aspect)
            ids = asked.candidates or everything
            found[asked.id] = {id: float(vectors[id] @ query) for id in ids}
            progress(len(read) + number, total)
        return found


def passage_vector(spans: Sequence[Span], vectors: Floats, passage: Span) -> Floats:
    """The mean of the vectors of a passage's sentences, whose product with a query is the mean of their products."""
    first, last = inside(spans, passage)
    mean: Floats = vectors[first:last].mean(0) if last > first else np.zeros(vectors.shape[1], np.float32)
    return mean


def inside(spans: Sequence[Span], passage: Span) -> tuple[int, int]:
    """The first sentence of a passage, and the one after its last: those that begin in it, else the one around it.

    >>> inside([Span(0, 5), Span(6, 30), Span(31, 40)], Span(6, 40)), inside([Span(0, 30)], Span(10, 20))
    ((1, 3), (0, 1))
    """
    places = [place for place, span in enumerate(spans) if passage.begin <= span.begin < passage.end]
    if places:
        return places[0], places[-1] + 1
    around = [place for place, span in enumerate(spans) if span.begin < passage.end and passage.begin < span.end]
    return (around[0], around[0] + 1) if around else (0, 0)

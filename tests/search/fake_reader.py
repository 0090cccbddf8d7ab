"""A reader of answers for tests, which marks the words of the question."""

import re

from capr.documents import Span
from capr.runtime.reader import ReadAnswer


class FakeReader:
    """Marks every occurrence of each part of a question, "40 mg/Lasix"; the first part has the highest confidence."""

    name = "fake"
    threshold = 0.5

    def __init__(self, confidence=0.9, step=0.1):
        self.confidence, self.step = confidence, step
        self.paragraphs = []

    def read(self, question, paragraphs, best=1):
        self.paragraphs += paragraphs
        return [self._read(question.rstrip("?"), paragraph)[:best] for paragraph in paragraphs]

    def _read(self, question, paragraph):
        return [
            ReadAnswer(Span(*match.span()), round(self.confidence - self.step * rank, 4))
            for rank, part in enumerate(question.split("/"))
            for match in re.finditer(re.escape(part), paragraph)
        ]

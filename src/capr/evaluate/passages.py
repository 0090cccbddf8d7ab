"""Questions about documents: which passages of a library answer them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from capr.documents import CaprError, Span
from capr.evaluate.protocol import LibraryProtocol
from capr.evaluate.task import OnTask, Progress, Run, Task, TaskQuery
from capr.evaluate.through_library import (
    DEPTH,
    Setting,
    answering_passages,
    passage_id,
    search_all,
    sentences_of,
    without_empty,
    without_operators,
)
from capr.models.family import option
from capr.search import Library
from capr.segment import passages
from capr.supervise.reports import Report, read_reports


@dataclass(frozen=True, kw_only=True)
class Passages(LibraryProtocol):
    """Questions about documents, in a library of all documents: which passage answers?

    --data is in SQuAD's or emrQA's format. Each question is searched in its own document, or in all with --everywhere.

    Example: capr evaluate passages --data questions.json --model bm25+encoder
    """

    forms: ClassVar[Sequence[str]] = ("question",)

    data: Path = option(help="The documents with their questions.", metavar="FILE")
    everywhere: bool = option(False, "Search all documents for the answer to each question.")

    def ask(
        self, model: str, form: str, fusion: str, limit: int, progress: Progress, on_task: OnTask
    ) -> tuple[Task, Run]:
        setting = Setting.of(model).check()
        reports = read_reports(self.data)
        task = make_task(reports, self.data, limit)
        on_task(task)

        def search(library: Library, query: TaskQuery) -> dict[str, float]:
            document, _ = task.spans[min(query.relevant)]
            filters = None if self.everywhere else {"document": document}
            words = without_operators(query.question)
            hits = library.search(words, DEPTH, mode=setting.mode, fusion=fusion, filters=filters) if words else ()
            return {passage_id(hit.passage): hit.score for hit in hits}

        return task, search_all(task, setting, [report.document for report in reports], search, progress)


def make_task(reports: Sequence[Report], path: Path, limit: int = 0) -> Task:
    """Return the task of reports with questions; questions without an answer are left out.

    Raises:
        CaprError: no question has an answer, or two questions have the same id.
    """
    texts: dict[str, str] = {}
    spans: dict[str, tuple[str, Span]] = {}
    sentences: dict[str, tuple[Span, ...]] = {}
    queries: list[TaskQuery] = []
    for report in reports:
        document, document_passages = report.document, passages(report.document)
        for passage in document_passages:
            id = passage_id(passage)
            texts[id] = document[passage.span]
            spans[id] = document.id, passage.span
            sentences[id] = sentences_of(passage)
        for question in report.questions:
            if relevant := answering_passages(document_passages, question.answers):
                query = TaskQuery(question.id, "", "", question.text, frozenset(relevant))
                queries.append(replace(query, sentences=without_empty(relevant)))
    counts = Counter(query.id for query in queries)
    if len(counts) < len(queries):
        id, count = counts.most_common(1)[0]
        raise CaprError(f"{path} has {count} questions with the id {id!r}. Fix: give each question an id of its own.")
    if not queries:
        fix = "name a file in SQuAD's or emrQA's format with answers; capr questions makes one from notes"
        raise CaprError(f"{path} has no question with an answer. Fix: {fix}.")
    unanswerable = sum(len(report.questions) for report in reports) - len(queries)
    without_answer = (
        "1 question without an answer is" if unanswerable == 1 else f"{unanswerable:,} questions without an answer are"
    )
    notices = [f"{without_answer} left out"] if unanswerable else []
    queries = queries[:limit] if limit else queries
    return Task("passages", texts, queries, spans=spans, sentences=sentences, notices=notices)

"""Reports with questions about them, and the spans that answer.

They come from SQuAD's format and from emrQA (`reports`), from the samples (`sample_reports`), and from notes
(`capr.supervise.questions`).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from capr.annotate.query import Query
from capr.deprecation import renamed_attributes
from capr.documents import CaprError, Document, Problem, Span, read
from capr.supervise.split import is_test

MAX_OFFSET_ERROR = 50  # characters between the offset of an answer and its text


@dataclass(frozen=True, slots=True)
class ReportQuestion:
    """A question about a report.

    Attributes:
        id: the id of the question.
        text: the text of the question.
        answers: spans of the report's text, each of which answers the question; none if the report does not answer it.
    """

    id: str
    text: str
    answers: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """A document and the questions about it."""

    document: Document
    questions: tuple[ReportQuestion, ...]


def reports(documents: Iterable[Document], occurrence: str = "nearest") -> Iterator[Report]:
    """Yield the reports of documents with questions, as `capr.read` yields them from SQuAD v1 and v2 and from emrQA.

    emrQA's notes go through the filter of `capr.supervise.emrqa`, which drops all parts of emrQA but two.

    Args:
        documents: with annotations of the kind `question`; a document without any becomes a report without questions.
        occurrence: which position of an emrQA answer to take, `nearest` (PAR-emrQA) or `first` (CliniRC).

    Example:
        >>> from capr.documents import Annotation
        >>> value = {"id": "1", "question": "What hurts?", "answers": [{"begin": 0, "end": 4, "text": "Knee"}]}
        >>> document = Document("n1", "Knee pain.", annotations=(Annotation("question", Span(0, 10), value),))
        >>> [question.answers for report in reports([document]) for question in report.questions]
        [(Span(begin=0, end=4),)]
    """
    from capr.supervise import emrqa

    for document in documents:
        if not emrqa.is_note(document):
            yield _squad_report(document)
        elif document.title in emrqa.PARTS:
            yield emrqa.report(document, occurrence)


def read_reports(path: str | Path, on_problem: Callable[[Problem], None] | None = None) -> list[Report]:
    """Read the reports of a file in SQuAD's or emrQA's format, and correct slightly wrong offsets.

    Raises:
        CaprError: the file has no reports.
    """
    documents = read(path, on_problem=on_problem)
    file_reports = list(reports(documents))
    if not file_reports:
        cause = "; ".join(str(problem) for problem in documents.problems) or "it is empty"
        raise CaprError(f"{path} has no reports ({cause}). Fix: name a file in SQuAD's or emrQA's format.")
    return file_reports


def _squad_report(document: Document) -> Report:
    """Correct slightly wrong offsets; drop a question if the text contains none of its answers."""
    questions = []
    for annotation in document.annotated("question"):
        value = annotation.value
        unplaced = value.get("unplaced", ())
        spans = dict.fromkeys(Span(answer["begin"], answer["end"]) for answer in value["answers"])
        spans |= dict.fromkeys(
            span for span in (_nearest_occurrence(document.text, answer) for answer in unplaced) if span
        )
        if unplaced and not spans:
            continue
        wordings = (value["question"], *value.get("paraphrases", ()))
        questions += [
            ReportQuestion(value["id"] if not number else f"{value['id']}/{number}", words, tuple(spans))
            for number, words in enumerate(wordings)
        ]
    annotations = tuple(annotation for annotation in document.annotations if annotation.kind != "question")
    return Report(replace(document, annotations=annotations), tuple(questions))


def _nearest_occurrence(text: str, answer: Any) -> Span | None:
    """Find the words of an answer close to its offset, at the nearest position."""
    words, offset = (answer.get("text"), answer.get("answer_start")) if isinstance(answer, dict) else (None, None)
    if not isinstance(words, str) or not isinstance(offset, int) or not words.strip():
        return None
    words = words.strip()
    window = range(max(0, offset - MAX_OFFSET_ERROR), offset + MAX_OFFSET_ERROR)
    begin = min(
        (position for position in window if text.startswith(words, position)),
        key=lambda position: abs(position - offset),
        default=None,
    )
    return None if begin is None else Span(begin, begin + len(words))


def sample_reports(pairs: bool = False) -> list[Report]:
    """Return the sample notes and articles, each with questions that it answers and some that it does not.

    A question about a patient goes with every note of the patient that answers it, with the answers in that note. A
    question that none of the patient's notes answers goes with each of them. A note does not get a question that only
    another note of the patient answers: its authors did not record whether the note answers in part. Questions over all
    notes (`Which patient ...?`) are omitted, since they are not about one note. A question about articles goes with the
    articles that answer it, or if none does, with the article whose title it names.

    Args:
        pairs: whether to add pairs of an entity and an aspect, in the words that a model gets.
    """
    from capr import samples

    by_document: dict[str, list[ReportQuestion]] = {}
    documents = samples.documents()
    for question in samples.questions():
        if question.question is None and not pairs:
            continue
        text = question.question or Query(entity=question.entity or "", aspect=question.aspect or "").wording
        for document in documents:
            if not _is_about(document, question):
                continue
            spans = dict.fromkeys(answer.span for answer in question.answers if answer.document == document.id)
            if spans or not question.answers:
                by_document.setdefault(document.id, []).append(
                    ReportQuestion(f"{question.id}/{document.id}", text, tuple(spans))
                )
    return [Report(document, tuple(by_document.get(document.id, ()))) for document in documents]


def _is_about(document: Document, question: Any) -> bool:
    if document.metadata["source"] != question.collection:
        return False
    if question.collection == "notes":
        return bool(question.patient == document.metadata["patient"])
    text = f"{question.question or question.entity}".lower()
    return bool(question.answers) or document.title.lower() in text


def split(reports: Iterable[Report], share: float = 0.2, seed: int = 0) -> tuple[list[Report], list[Report]]:
    """Split reports into a training part and a test part with about that share of them.

    Only the id of a document and the seed decide its part; seed 0 gives the split of all other tests of capr.
    """
    parts: tuple[list[Report], list[Report]] = ([], [])
    for report in reports:
        id = report.document.id
        parts[is_test(f"{seed} {id}" if seed else id, share)].append(report)
    return parts


def sample_questions(reports: Iterable[Report], share: float, seed: int | random.Random = 2) -> list[Report]:
    """Draw a share of the questions of each report with replacement, as CliniRC does to train on emrQA."""
    rng = seed if isinstance(seed, random.Random) else random.Random(seed)
    return [
        replace(report, questions=tuple(rng.choices(report.questions, k=int(len(report.questions) * share))))
        for report in reports
    ]


def count(reports: Sequence[Report]) -> tuple[int, int]:
    """Count the questions, and the questions without an answer."""
    questions = [question for report in reports for question in report.questions]
    return len(questions), sum(not question.answers for question in questions)


def write_squad(reports: Iterable[Report], path: str | Path) -> None:
    """Write SQuAD v2 JSON; `reports(capr.read(path))` returns the same reports.

    Raises:
        CaprError: two documents have the same id, so a reader would lose one of them.
    """
    path, seen = Path(path), set[str]()
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8") as file:
        file.write('{"version": "v2.0", "data": [')
        for number, report in enumerate(reports):
            if report.document.id in seen:
                fix = "give each document its own id, or write one file for each source"
                raise CaprError(f"two reports have the id {report.document.id!r}. Fix: {fix}.")
            seen.add(report.document.id)
            file.write((",\n" if number else "\n") + json.dumps(_as_squad(report), ensure_ascii=False))
        file.write("\n]}\n")
    part.replace(path)


def _as_squad(report: Report) -> dict[str, Any]:
    document = report.document
    questions = [
        {
            "id": question.id,
            "question": question.text,
            "answers": [{"text": document[span], "answer_start": span.begin} for span in question.answers],
            "is_impossible": not question.answers,
        }
        for question in report.questions
    ]
    annotations = document.as_json().get("annotations")
    annotation_fields = {"annotations": annotations} if annotations else {}
    paragraph = {"note_id": document.id, "context": document.text, "qas": questions}
    return {"title": document.title, "paragraphs": [{**document.metadata, **annotation_fields, **paragraph}]}


__getattr__ = renamed_attributes(__name__, {"of_samples": "sample_reports", "sampled": "sample_questions"})

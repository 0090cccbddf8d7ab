"""Reports with questions about them, and where in the text the answers stand.

They come from SQuAD's format and from emrQA (`reports`), from the samples that ship (`of_samples`), and from notes
themselves (`capr.supervise.questions`).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from capr.annotate.query import Query
from capr.documents import CaprError, Document, Problem, Span, read
from capr.evaluate.split import is_test

NEAR = 50  # characters from the offset that is given for an answer


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about a report.

    Attributes:
        id: of the question.
        text: of the question.
        answers: ranges of the report's text, each of which answers it; none if the report does not say.
    """

    id: str
    text: str
    answers: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """A document and the questions that were asked about it."""

    document: Document
    questions: tuple[Asked, ...]


def reports(documents: Iterable[Document], occurrence: str = "nearest") -> Iterator[Report]:
    """The reports of documents that carry questions, as `capr.read` gives them from SQuAD v1 and v2 and from emrQA.

    emrQA's notes are filtered as `capr.supervise.emrqa` says, and those of other parts than its two left out.

    Args:
        documents: with annotations of the kind `question`; those without any give a report without questions.
        occurrence: which place of an emrQA answer counts, `nearest` (PAR-emrQA) or `first` (CliniRC).

    Example:
        >>> from capr.documents import Annotation
        >>> asked = {"id": "1", "question": "What hurts?", "answers": [{"begin": 0, "end": 4, "text": "Knee"}]}
        >>> document = Document("n1", "Knee pain.", annotations=(Annotation("question", Span(0, 10), asked),))
        >>> [asked.answers for report in reports([document]) for asked in report.questions]
        [(Span(begin=0, end=4),)]
    """
    from capr.supervise import emrqa

    for document in documents:
        if not emrqa.is_note(document):
            yield _of_squad(document)
        elif document.title in emrqa.PARTS:
            yield emrqa.report(document, occurrence)


def read_reports(path: str | Path, on_problem: Callable[[Problem], None] | None = None) -> list[Report]:
    """The reports of a file in SQuAD's or emrQA's format; offsets that are a little wrong are put right.

    Raises:
        CaprError: there is no report in it.
    """
    documents = read(path, on_problem=on_problem)
    found = list(reports(documents))
    if not found:
        said = "; ".join(str(problem) for problem in documents.problems) or "it is empty"
        raise CaprError(f"{path} has no reports ({said}). Fix: name a file in SQuAD's or emrQA's format.")
    return found


def _of_squad(document: Document) -> Report:
    """Offsets that are a little wrong are put right; a question whose answers cannot be found at all is left out."""
    questions = []
    for annotation in document.annotated("question"):
        value = annotation.value
        unplaced = value.get("unplaced", ())
        spans = dict.fromkeys(Span(answer["begin"], answer["end"]) for answer in value["answers"])
        spans |= dict.fromkeys(span for span in (_near(document.text, answer) for answer in unplaced) if span)
        if unplaced and not spans:
            continue
        wordings = (value["question"], *value.get("paraphrases", ()))
        questions += [
            Asked(value["id"] if not i else f"{value['id']}/{i}", words, tuple(spans))
            for i, words in enumerate(wordings)
        ]
    others = tuple(annotation for annotation in document.annotations if annotation.kind != "question")
    return Report(replace(document, annotations=others), tuple(questions))


def _near(text: str, answer: Any) -> Span | None:
    """Where the words of an answer stand, nearest to the offset that was given for them, if not far from it."""
    words, offset = (answer.get("text"), answer.get("answer_start")) if isinstance(answer, dict) else (None, None)
    if not isinstance(words, str) or not isinstance(offset, int) or not words.strip():
        return None
    words = words.strip()
    window = range(max(0, offset - NEAR), offset + NEAR)
    begin = min((i for i in window if text.startswith(words, i)), key=lambda i: abs(i - offset), default=None)
    return None if begin is None else Span(begin, begin + len(words))


def of_samples(pairs: bool = False) -> list[Report]:
    """The notes and articles that ship, each with the questions that it answers and some that it does not.

    A question about a patient goes with every note of theirs that answers it, with the answers in that note. One that
    nothing in their notes answers goes with each of their notes, since none of them does. One that only another note
    of theirs answers is left out of a note: whether this one answers in part was not asked when they were written. So
    are questions over all notes (`Which patient ...?`), as they are not about one. A question about articles
    goes with those that answer it, and if none does with the article whose title it names.

    Args:
        pairs: whether pairs of an entity and an aspect are asked, too, in the words that a model gets.
    """
    from capr import samples

    found: dict[str, list[Asked]] = {}
    documents = samples.documents()
    for question in samples.questions():
        if question.question is None and not pairs:
            continue
        text = question.question or Query(entity=question.entity or "", aspect=question.aspect or "").wording
        for document in documents:
            if not _concerns(document, question):
                continue
            spans = dict.fromkeys(answer.span for answer in question.answers if answer.document == document.id)
            if spans or not question.answers:
                found.setdefault(document.id, []).append(Asked(f"{question.id}/{document.id}", text, tuple(spans)))
    return [Report(document, tuple(found.get(document.id, ()))) for document in documents]


def _concerns(document: Document, question: Any) -> bool:
    if document.metadata["source"] != question.collection:
        return False
    if question.collection == "notes":
        return bool(question.patient == document.metadata["patient"])
    asked = f"{question.question or question.entity}".lower()
    return bool(question.answers) or document.title.lower() in asked


def split(reports: Iterable[Report], share: float = 0.2, seed: int = 0) -> tuple[list[Report], list[Report]]:
    """The reports to train on and, about that share of them, to test on.

    Only a document's id and the seed decide where it goes; with seed 0 as for every other test of capr.
    """
    parts: tuple[list[Report], list[Report]] = ([], [])
    for report in reports:
        id = report.document.id
        parts[is_test(f"{seed} {id}" if seed else id, share)].append(report)
    return parts


def sampled(reports: Iterable[Report], share: float, seed: int | random.Random = 2) -> list[Report]:
    """The reports with a share of the questions of each, drawn with replacement, as CliniRC trains on emrQA."""
    draw = seed if isinstance(seed, random.Random) else random.Random(seed)
    return [
        replace(report, questions=tuple(draw.choices(report.questions, k=int(len(report.questions) * share))))
        for report in reports
    ]


def count(reports: Sequence[Report]) -> tuple[int, int]:
    """How many questions are asked, and how many of them have no answer."""
    asked = [asked for report in reports for asked in report.questions]
    return len(asked), sum(not one.answers for one in asked)


def write_squad(reports: Iterable[Report], path: str | Path) -> None:
    """Writes SQuAD v2 JSON; `reports(capr.read(path))` gives the same reports.

    Raises:
        CaprError: two documents have the same id, of which only one could be read again.
    """
    path, seen = Path(path), set[str]()
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8") as file:
        file.write('{"version": "v2.0", "data": [')
        for number, report in enumerate(reports):
            if report.document.id in seen:
                fix = "give each document an id of its own, or write a file for each source"
                raise CaprError(f"two reports have the id {report.document.id!r}. Fix: {fix}.")
            seen.add(report.document.id)
            file.write((",\n" if number else "\n") + json.dumps(_as_squad(report), ensure_ascii=False))
        file.write("\n]}\n")
    part.replace(path)


def _as_squad(report: Report) -> dict[str, Any]:
    document = report.document
    questions = [
        {
            "id": asked.id,
            "question": asked.text,
            "answers": [{"text": document[span], "answer_start": span.begin} for span in asked.answers],
            "is_impossible": not asked.answers,
        }
        for asked in report.questions
    ]
    kept = document.as_json().get("annotations")
    marks = {"annotations": kept} if kept else {}
    paragraph = {"note_id": document.id, "context": document.text, "qas": questions}
    return {"title": document.title, "paragraphs": [{**document.metadata, **marks, **paragraph}]}

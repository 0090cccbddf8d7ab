"""The sample corpus: 70 notes of 30 patients and 32 health articles, with 319 questions and their exact answers.

All texts are fictional and were written for capr. Any likeness to a real patient is a coincidence. The demo and the
tests use the corpus, and it is a small benchmark.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from capr.documents import Document, Span, read


@dataclass(frozen=True, slots=True)
class GoldAnswer:
    """A right answer to a question.

    Attributes:
        document: the id of the document.
        passage: the span of the passage to read.
        span: the span of the answer, inside the passage.
        text: the characters of the answer.
    """

    document: str
    passage: Span
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question with all its right answers.

    Attributes:
        id: the id of the question.
        collection: the documents that the question is about: `notes` or `articles`.
        question: a question in plain words, or None for a pair of `entity` and `aspect`.
        entity: the entity of a pair, or None.
        aspect: the aspect of a pair, or None.
        patient: the patient whose notes to search, or None for the whole collection.
        answers: the right answers; empty if the question is unanswerable.
    """

    id: str
    collection: str
    question: str | None
    entity: str | None
    aspect: str | None
    patient: str | None
    answers: tuple[GoldAnswer, ...]


def folder() -> Path:
    """Return the folder of the samples: `notes` (with a metadata.csv), `articles` and `questions.jsonl`."""
    return Path(__file__).parent


def documents() -> list[Document]:
    """Return all notes and articles.

    >>> len(documents())
    102
    """
    return list(read([folder() / "notes", folder() / "articles"], strict=True))


def questions() -> list[Question]:
    """Return all questions, including unanswerable ones.

    >>> len(questions())
    319
    """
    result = []
    with (folder() / "questions.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            answers = tuple(
                GoldAnswer(
                    answer["document"],
                    Span(answer["passage_begin"], answer["passage_end"]),
                    Span(answer["begin"], answer["end"]),
                    answer["text"],
                )
                for answer in record["answers"]
            )
            fields = {name: record.get(name) for name in ("question", "entity", "aspect", "patient")}
            result.append(Question(record["id"], record["collection"], **fields, answers=answers))
    return result

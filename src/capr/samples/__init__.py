"""The sample corpus: 70 notes of 30 patients and 32 health articles, with 319 questions and their exact answers.

Everything in it was written for capr and is fictional; any likeness to a real patient is chance. It serves the demo and
the tests, and is a first small benchmark.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from capr.documents import Document, Span, read


@dataclass(frozen=True, slots=True)
class GoldAnswer:
    """A place that answers a question: the passage to read, and the words themselves inside it."""

    document: str
    passage: Span
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question with everything that answers it; nothing does if `answers` is empty.

    Attributes:
        collection: what it is asked of, `notes` or `articles`.
        question: a plain question, or None for a pair of `entity` and `aspect`.
        patient: whose notes are asked; None for the whole collection.
    """

    id: str
    collection: str
    question: str | None
    entity: str | None
    aspect: str | None
    patient: str | None
    answers: tuple[GoldAnswer, ...]


def folder() -> Path:
    """Where the samples are installed: `notes` (with a metadata.csv), `articles` and `questions.jsonl`."""
    return Path(__file__).parent


def documents() -> list[Document]:
    """All notes and articles."""
    return list(read([folder() / "notes", folder() / "articles"], strict=True))


def questions() -> list[Question]:
    """All questions, those without an answer included."""
    found = []
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
            found.append(Question(record["id"], record["collection"], **fields, answers=answers))
    return found

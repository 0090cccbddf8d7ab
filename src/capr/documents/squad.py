"""SQuAD v1 and v2, and emrQA's `data.json`: contexts with questions and their answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capr.documents.document import Annotation, Document, Span
from capr.documents.format import Format, Records
from capr.documents.json_stream import nested_items
from capr.documents.problem import Problem
from capr.documents.source import Source


def read(source: Source) -> Records:
    """One document per context; its questions are annotations of the whole text, their answers ranges of it.

    emrQA gives a context as a list of lines and an answer by its evidence lines. Those become the text, line by
    line, and the range of the evidence; the answer's own fields are kept beside it.
    """
    seen: dict[str, int] = {}
    number = 0
    for item in nested_items(source, "data.item", "paragraphs"):
        if isinstance(item, Problem):
            yield item
            continue
        number += 1
        article, paragraph = item
        context = paragraph.get("context") if isinstance(paragraph, dict) else None
        if isinstance(context, list) and all(isinstance(line, str) for line in context):
            lines = [line if line.endswith("\n") else line + "\n" for line in context]
        elif isinstance(context, str):
            lines = [context]
        else:
            fix = "each paragraph needs a context: a string (SQuAD) or a list of lines (emrQA)"
            yield Problem("the paragraph has no context", fix, record=number)
            continue
        title = str(article.get("title", ""))
        identifier = paragraph.get("note_id") or paragraph.get("document_id")
        if identifier is None:
            seen[title] = seen.get(title, 0) + 1
            identifier = f"{title}#{seen[title]}" if title else source.document_id(number)
        elif isinstance(context, list):
            identifier = f"{title}/{identifier}"  # emrQA repeats a note for each of its subsets
        problems: list[Problem] = []
        questions = tuple(_questions(paragraph, lines, str(identifier), problems))
        yield from problems
        metadata = {
            k: v for k, v in paragraph.items() if k not in ("context", "qas", "note_id") and _is_simple(v)
        }
        yield Document(str(identifier), "".join(lines), title, metadata, questions)


def _questions(
    paragraph: Mapping[str, Any], lines: list[str], identifier: str, problems: list[Problem]
) -> list[Annotation]:
    text = "".join(lines)
    found = []
    for i, qa in enumerate(paragraph.get("qas") or [], 1):
        if not isinstance(qa, dict) or not qa.get("question"):
            problems.append(
                Problem(f"question {i} has no words", "give every entry a `question`", record=identifier)
            )
            continue
        wordings = qa["question"] if isinstance(qa["question"], list) else [qa["question"]]
        question_id = str(qa.get("id") or f"{identifier}/{i}")
        answers = []
        for answer in qa.get("answers") or []:
            located = _locate(answer, text, lines)
            if isinstance(located, str):
                problems.append(
                    Problem(
                        f"an answer of question {question_id!r} {located}",
                        "correct its offset",
                        record=identifier,
                    )
                )
            else:
                answers.append(located)
        value = {"id": question_id, "question": wordings[0], "answers": answers}
        if len(wordings) > 1:
            value["paraphrases"] = wordings[1:]
        if "is_impossible" in qa:
            value["is_impossible"] = bool(qa["is_impossible"])
        found.append(Annotation("question", Span(0, len(text)), value))
    return found


def _locate(answer: Any, text: str, lines: list[str]) -> dict[str, Any] | str:  # noqa: ANN401 (whatever the JSON holds)
    """The answer with its range, or what is wrong with it."""
    if not isinstance(answer, dict):
        return "is not an object"
    if "evidence" in answer:
        return _locate_evidence(answer, lines)
    words, begin = answer.get("text"), answer.get("answer_start")
    if not isinstance(words, str) or not isinstance(begin, int):
        return "has no text or no answer_start"
    if text[begin : begin + len(words)] != words:
        words = (
            words.strip()
        )  # annotation tools often count the offset of the words and keep a blank beside them
    if text[begin : begin + len(words)] != words:
        return (
            f"is not where its offset says: {words[:40]!r} against {text[begin : begin + len(words)][:40]!r}"
        )
    return {"begin": begin, "end": begin + len(words), "text": words}


def _locate_evidence(answer: Mapping[str, Any], lines: list[str]) -> dict[str, Any] | str:
    """emrQA: the line that `evidence_start` counts (from 1), if the evidence is there; else the nearest that has it."""
    evidence = answer["evidence"]
    words = evidence if isinstance(evidence, str) else " ".join(map(str, evidence or []))
    start = answer.get("evidence_start")
    number = start if isinstance(start, int) else 0
    first_words = words.strip().split("\n")[0].strip()
    candidates = sorted(
        (i for i, line in enumerate(lines) if first_words in line), key=lambda i: abs(i + 1 - number)
    )
    if not first_words or not candidates:
        return f"has evidence that is not in the note: {words[:40]!r}"
    begin = sum(len(line) for line in lines[: candidates[0]]) + lines[candidates[0]].index(first_words)
    kept = {
        k: v
        for k, v in answer.items()
        if k in ("text", "answer_start", "answer_entity_type", "evidence_start")
    }
    return {"begin": begin, "end": begin + len(first_words), "evidence": words, **kept}


def _is_simple(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, str | int | float | bool) and value != ""


def recognises(name: str, head: str) -> bool:
    return head.lstrip()[:1] == "{" and '"paragraphs"' in head and ('"context"' in head or '"qas"' in head)


FORMAT = Format(
    "squad", "SQuAD v1/v2 and emrQA data.json: contexts with questions and answers", recognises, read
)

"""SQuAD v1 and v2, and emrQA's `data.json`: contexts with questions and their answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from capr.documents.document import Annotation, Document, Span
from capr.documents.format import Format, Records
from capr.documents.json_stream import BrokenJsonError, JsonStream
from capr.documents.problem import Problem, ReadError
from capr.documents.records import annotation_from
from capr.documents.source import Source

NO_LIST = Problem("the JSON has no list called `data`", "check that --format names the right format")


def read(source: Source) -> Records:
    """One document per context; its questions are annotations of the whole text, their answers ranges of it.

    emrQA gives a context as a list of lines and an answer by its evidence lines. Those become the text, line by
    line, and the range of the evidence; the answer's own fields are kept beside it. An answer
    that is not in the text is a problem, and kept under `unplaced`.
    """
    titles = _titles_ahead(source)
    seen: Counter[str] = Counter()
    number = articles = 0
    stream = JsonStream(source)
    try:
        for at_article in _articles(stream):
            articles += 1
            if not at_article:
                yield Problem(
                    "the article is not an object",
                    "give each a title and paragraphs",
                    record=f"article {articles}",
                )
                continue
            title, found = titles.get(articles, ""), False
            unnamed = f"article {articles}"  # standard input cannot be looked ahead in
            for key in stream.members():
                if key == "paragraphs" and stream.next() == "[":
                    found = True
                    for paragraph in stream.elements():
                        number += 1
                        yield from _document(paragraph, title or unnamed, title, number, source, seen)
                elif key == "title":
                    title = str(stream.value() or "")
                else:
                    stream.value()
            if not found:
                fix = "give the article a list of paragraphs"
                yield Problem("the article has no list of paragraphs", fix, record=title or unnamed)
        if not articles:
            yield NO_LIST
        stream.end()
    except BrokenJsonError as broken:
        yield broken.problem(number + 1)


def _articles(stream: JsonStream) -> Iterator[bool]:
    """Stops at each article of `data`: True if it is an object, which the caller must walk through."""
    if stream.next() != "{":
        stream.value()
        return
    for key in stream.members():
        if key != "data" or stream.next() != "[":
            stream.value()
            continue
        for _ in stream.walk_elements():
            is_object = stream.next() == "{"
            if not is_object:
                stream.value()
            yield is_object


def _titles_ahead(source: Source) -> dict[int, str]:
    """The titles of the articles by number, where they follow the paragraphs: emrQA, and JSON with sorted keys."""
    head = source.head
    if '"title"' in head[: head.find('"paragraphs"')]:
        return {}
    ahead = source.again()
    if ahead is None:
        return {}
    titles: dict[int, str] = {}
    with ahead:
        stream = JsonStream(ahead)
        try:
            for number, is_object in enumerate(_articles(stream), 1):
                for key in stream.members() if is_object else ():
                    if key == "paragraphs" and stream.next() == "[":
                        for _ in stream.elements():
                            pass
                    elif key == "title":
                        titles[number] = str(stream.value())
                    else:
                        stream.value()
        except (BrokenJsonError, ReadError, EOFError, OSError, UnicodeDecodeError):
            pass  # the reading itself will meet it, and report it
    return titles


def _document(paragraph: Any, article: str, title: str, number: int, source: Source, seen: Counter[str]) -> Records:
    context = paragraph.get("context") if isinstance(paragraph, dict) else None
    if isinstance(context, str):
        lines = [context]
    elif isinstance(context, list) and all(isinstance(line, str) for line in context):
        lines = [line if line.endswith("\n") else line + "\n" for line in context]
    else:
        fix = "each paragraph needs a context: a string (SQuAD) or a list of lines (emrQA)"
        yield Problem("the paragraph has no context", fix, record=number)
        return
    identifier = paragraph.get("note_id", paragraph.get("document_id"))
    if identifier is None:
        seen[title] += 1
        identifier = f"{title}#{seen[title]}" if title else source.document_id(number)
    elif isinstance(context, list):
        identifier = f"{article}/{identifier}"  # emrQA repeats a note for each of its subsets
    problems: list[str] = []
    questions = tuple(_questions(paragraph.get("qas"), lines, str(identifier), problems))
    yield from (Problem(fact, "correct it in the file; the rest was read", record=str(identifier)) for fact in problems)
    text = "".join(lines)
    annotations, used = questions, {"context", "qas", "note_id"}
    if isinstance(paragraph.get("annotations"), list):
        try:
            annotations = (*(annotation_from(value, len(text)) for value in paragraph["annotations"]), *questions)
            used.add("annotations")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            fact = f"an annotation is not usable ({type(error).__name__}: {error})"
            yield Problem(fact, "each needs kind, begin and end, inside the text", record=str(identifier))
    metadata = {k: v for k, v in paragraph.items() if k not in used and v not in (None, "")}
    yield Document(str(identifier), text, title, metadata, annotations)


def _questions(qas: Any, lines: list[str], identifier: str, problems: list[str]) -> Iterator[Annotation]:
    text = "".join(lines)
    if not isinstance(qas or [], list):
        problems.append("the qas are not a list")
        return
    for i, qa in enumerate(qas or [], 1):
        if not isinstance(qa, dict) or not qa.get("question"):
            problems.append(f"question {i} has no words")
            continue
        wordings = qa["question"] if isinstance(qa["question"], list) else [qa["question"]]
        value = {k: v for k, v in qa.items() if k not in ("id", "question", "answers")}
        question_id = qa.get("id")
        if isinstance(question_id, list):  # emrQA: the template and its logical form
            value["template"] = question_id
            question_id = None
        question_id = f"{identifier}/{i}" if question_id is None else str(question_id)
        answers, unplaced = [], []
        if not isinstance(qa.get("answers") or [], list):
            problems.append(f"the answers of question {question_id!r} are not a list")
            qa = {}
        for answer in qa.get("answers") or []:
            located = _locate(answer, text, lines)
            if isinstance(located, str):
                problems.append(f"an answer of question {question_id!r} {located}")
                unplaced.append(answer)
            else:
                answers.append(located)
        value |= {"id": question_id, "question": wordings[0], "answers": answers}
        if unplaced:
            value["unplaced"] = unplaced
        if len(wordings) > 1:
            value["paraphrases"] = wordings[1:]
        yield Annotation("question", Span(0, len(text)), value)


def _locate(answer: Any, text: str, lines: list[str]) -> dict[str, Any] | str:
    """The answer with its range, or what is wrong with it."""
    if not isinstance(answer, dict):
        return "is not an object"
    if "evidence" in answer:
        return _locate_evidence(answer, lines)
    words, begin = answer.get("text"), answer.get("answer_start")
    if not isinstance(words, str) or not isinstance(begin, int):
        return "has no text or no answer_start"
    for form in (
        words,
        words.strip(),
    ):  # annotation tools often count from the words and keep a blank beside them
        if form and begin >= 0 and text[begin : begin + len(form)] == form:
            return {"begin": begin, "end": begin + len(form), "text": form}
    return f"is not where its offset says: {words[:40]!r} against {text[max(0, begin) :][: len(words)][:40]!r}"


def _locate_evidence(answer: Mapping[str, Any], lines: list[str]) -> dict[str, Any] | str:
    """emrQA: the range of the evidence, found at the line that `evidence_start` counts (from 1) or nearest to it.

    Evidence of several lines may be a text or a list; where its lines are apart, the range spans them and `parts` lists
    them. No evidence means the whole note.
    """
    evidence, starts = answer["evidence"], answer.get("evidence_start")
    listed = evidence if isinstance(evidence, list) else str(evidence or "").split("\n")
    wanted = [str(line).strip() for line in listed if str(line).strip()]
    kept = {k: v for k, v in answer.items() if k in ("text", "answer_start", "answer_entity_type", "evidence_start")}
    if not wanted:
        return {"begin": 0, "end": sum(map(len, lines)), "evidence": evidence, **kept}
    parts, near = [], 0
    for i, words in enumerate(wanted):
        start = starts[i] if isinstance(starts, list) and i < len(starts) else starts
        near = start if isinstance(start, int) and (i == 0 or isinstance(starts, list)) else near + 1
        found = min((n for n, line in enumerate(lines, 1) if words in line), key=lambda n: abs(n - near), default=None)
        if found is None:
            return f"has evidence that is not in the note: {words[:40]!r}"
        near = found
        begin = sum(len(line) for line in lines[: found - 1]) + lines[found - 1].index(words)
        parts.append([begin, begin + len(words)])
    located = {
        "begin": min(b for b, _ in parts),
        "end": max(e for _, e in parts),
        "evidence": evidence,
        **kept,
    }
    apart = any("".join(lines)[end:begin].strip() for (_, end), (begin, _) in pairwise(parts))
    return located | {"parts": parts} if apart else located


def recognises(name: str, head: str) -> bool:
    return head.lstrip()[:1] == "{" and '"paragraphs"' in head and ('"context"' in head or '"qas"' in head)


FORMAT = Format("squad", "SQuAD v1/v2 and emrQA data.json: contexts with questions and answers", recognises, read)

"""The reader of SQuAD v1 and v2 and of emrQA's `data.json`: contexts with questions and their answers."""

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
    """Yield one document per context. Its questions are annotations of the whole text, and their answers spans of it.

    emrQA gives a context as a list of lines, and an answer by its evidence lines. The lines become the text, and the
    evidence becomes a span; the answer keeps its other fields. An answer that is not in the text is a problem, and the
    question lists it under `unplaced`.
    """
    titles = _read_titles(source)
    counts: Counter[str] = Counter()  # of the documents without an id, by title
    number = articles = 0
    stream = JsonStream(source)
    try:
        for is_object in _articles(stream):
            articles += 1
            if not is_object:
                fix = "give each article a title and paragraphs"
                yield Problem("the article is not an object", fix, record=f"article {articles}")
                continue
            title, has_paragraphs = titles.get(articles, ""), False
            placeholder = f"article {articles}"  # for standard input, which cannot be read ahead for the title
            for key in stream.members():
                if key == "paragraphs" and stream.next() == "[":
                    has_paragraphs = True
                    for paragraph in stream.elements():
                        number += 1
                        yield from _document(paragraph, title or placeholder, title, number, source, counts)
                elif key == "title":
                    title = str(stream.value() or "")
                else:
                    stream.value()
            if not has_paragraphs:
                fix = "give the article a list of paragraphs"
                yield Problem("the article has no list of paragraphs", fix, record=title or placeholder)
        if not articles:
            yield NO_LIST
        stream.end()
    except BrokenJsonError as broken:
        yield broken.problem(number + 1)


def _articles(stream: JsonStream) -> Iterator[bool]:
    """Yield at each article of `data` whether it is an object. The caller must walk through an object."""
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


def _read_titles(source: Source) -> dict[int, str]:
    """Read the file ahead for titles that follow their paragraphs, as in emrQA and in JSON with sorted keys.

    Returns:
        The titles by the number of the article; empty if the titles come first.
    """
    head = source.head
    if '"title"' in head[: head.find('"paragraphs"')]:
        return {}
    second_source = source.reopen()
    if second_source is None:
        return {}
    titles: dict[int, str] = {}
    with second_source:
        stream = JsonStream(second_source)
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
            pass  # `read` will meet the same error and report it
    return titles


def _document(paragraph: Any, article: str, title: str, number: int, source: Source, counts: Counter[str]) -> Records:
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
        counts[title] += 1
        identifier = f"{title}#{counts[title]}" if title else source.document_id(number)
    elif isinstance(context, list):
        identifier = f"{article}/{identifier}"  # emrQA repeats a note for each of its subsets
    problems: list[str] = []
    questions = tuple(_questions(paragraph.get("qas"), lines, str(identifier), problems))
    yield from (Problem(fact, "correct it in the file; the rest was read", record=str(identifier)) for fact in problems)
    text = "".join(lines)
    annotations, mapped = questions, {"context", "qas", "note_id"}
    if isinstance(paragraph.get("annotations"), list):
        try:
            annotations = (*(annotation_from(value, len(text)) for value in paragraph["annotations"]), *questions)
            mapped.add("annotations")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            fact = f"an annotation is not usable ({type(error).__name__}: {error})"
            yield Problem(
                fact, "give each annotation a kind, and begin and end offsets inside the text", record=str(identifier)
            )
    metadata = {k: v for k, v in paragraph.items() if k not in mapped and v not in (None, "")}
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
            located_answer = _locate(answer, text, lines)
            if isinstance(located_answer, str):
                problems.append(f"an answer of question {question_id!r} {located_answer}")
                unplaced.append(answer)
            else:
                answers.append(located_answer)
        value |= {"id": question_id, "question": wordings[0], "answers": answers}
        if unplaced:
            value["unplaced"] = unplaced
        if len(wordings) > 1:
            value["paraphrases"] = wordings[1:]
        yield Annotation("question", Span(0, len(text)), value)


def _locate(answer: Any, text: str, lines: list[str]) -> dict[str, Any] | str:
    """Return the answer with its span, or the end of a sentence that says what is wrong with it."""
    if not isinstance(answer, dict):
        return "is not an object"
    if "evidence" in answer:
        return _locate_evidence(answer, lines)
    words, begin = answer.get("text"), answer.get("answer_start")
    if not isinstance(words, str) or not isinstance(begin, int):
        return "has no text or no answer_start"
    # Annotation tools often keep white space around the words, but count from the first word.
    for form in (words, words.strip()):
        if form and begin >= 0 and text[begin : begin + len(form)] == form:
            return {"begin": begin, "end": begin + len(form), "text": form}
    return f"is not where its offset says: {words[:40]!r} against {text[max(0, begin) :][: len(words)][:40]!r}"


def _locate_evidence(answer: Mapping[str, Any], lines: list[str]) -> dict[str, Any] | str:
    """Locate the evidence of an emrQA answer in the line of `evidence_start` (counted from 1) or the nearest line.

    Evidence of several lines may be a text or a list. If its lines are not neighbours, the span covers all of them and
    `parts` lists them. An answer without evidence has the whole note as its span.
    """
    evidence, starts = answer["evidence"], answer.get("evidence_start")
    raw_lines = evidence if isinstance(evidence, list) else str(evidence or "").split("\n")
    evidence_lines = [str(line).strip() for line in raw_lines if str(line).strip()]
    fields = {k: v for k, v in answer.items() if k in ("text", "answer_start", "answer_entity_type", "evidence_start")}
    if not evidence_lines:
        return {"begin": 0, "end": sum(map(len, lines)), "evidence": evidence, **fields}
    parts, expected = [], 0
    for i, words in enumerate(evidence_lines):
        start = starts[i] if isinstance(starts, list) and i < len(starts) else starts
        expected = start if isinstance(start, int) and (i == 0 or isinstance(starts, list)) else expected + 1
        numbers = (number for number, line in enumerate(lines, 1) if words in line)
        nearest = min(numbers, key=lambda number: abs(number - expected), default=None)
        if nearest is None:
            return f"has evidence that is not in the note: {words[:40]!r}"
        expected = nearest
        begin = sum(len(line) for line in lines[: nearest - 1]) + lines[nearest - 1].index(words)
        parts.append([begin, begin + len(words)])
    located_answer = {
        "begin": min(begin for begin, _ in parts),
        "end": max(end for _, end in parts),
        "evidence": evidence,
        **fields,
    }
    has_gaps = any("".join(lines)[end:begin].strip() for (_, end), (begin, _) in pairwise(parts))
    return located_answer | {"parts": parts} if has_gaps else located_answer


def recognises(name: str, head: str) -> bool:
    return head.lstrip()[:1] == "{" and '"paragraphs"' in head and ('"context"' in head or '"qas"' in head)


FORMAT = Format("squad", "SQuAD v1/v2 and emrQA data.json: contexts with questions and answers", recognises, read)

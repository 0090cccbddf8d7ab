"""Feedback as what `capr train` reads: queries, passages that people said answer them, and passages that do not."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from typing import Any

from capr.annotate import Query
from capr.documents import Document, Span
from capr.search import Library
from capr.serve.desk import Judgement
from capr.serve.masking import Masking

FEEDBACK = "feedback"  # stands for the aspect of all labels, since a label is a whole query


def pairs(judgements: Sequence[Judgement], library: Library, masking: Masking) -> tuple[bytes, list[str]]:
    """The file of pairs, and the ids of the documents in it.

    Where people disagree, the last word counts. Passages that are there no more are left out, and so are queries that
    no passage answers, since there is nothing to learn from them.
    """
    said: dict[str, dict[tuple[str, int, int], Judgement]] = {}
    for one in judgements:
        asked = Query(one.query, one.entity, one.aspect)
        said.setdefault(asked.wording, {})[one.document, one.begin, one.end] = one
    documents = {one.document: library.index.document(one.document) for some in said.values() for one in some.values()}
    numbers: dict[tuple[str, int, int], int] = {}
    labels: dict[int, list[str]] = {}
    draws: list[dict[str, Any]] = []
    for wording, some in said.items():
        there = {place: one for place, one in some.items() if _is_there(documents[place[0]], place)}
        if not any(one.answers for one in there.values()):
            continue
        for place in there:
            numbers.setdefault(place, len(numbers))
        wrong = [numbers[place] for place, one in there.items() if not one.answers]
        for place, one in there.items():
            if one.answers:
                labels.setdefault(numbers[place], []).append(wording)
                draws.append(_draw(one, wording, numbers[place], wrong))
    lines = [
        {"text": _text(place, documents[place[0]], labels.get(n, []), library, masking)} for place, n in numbers.items()
    ]
    lines += [{"draw": draw} for draw in draws]
    content = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    return gzip.compress(content.encode("utf-8", "replace"), mtime=0), list(
        dict.fromkeys(place[0] for place in numbers)
    )


def _is_there(document: Document | None, place: tuple[str, int, int]) -> bool:
    return document is not None and place[2] <= len(document.text)


def _draw(one: Judgement, wording: str, passage: int, wrong: Sequence[int]) -> dict[str, Any]:
    asked: dict[str, Any] = {"questions": [one.query]} if one.query else {"names": [one.entity], "heading": one.aspect}
    if not one.query and not (one.entity and one.aspect):
        asked = {"questions": [wording]}
    return {"passage": passage, "entity": wording, "aspect": FEEDBACK, **asked, "negatives": list(wrong)}


def _text(
    place: tuple[str, int, int], document: Document | None, answered: Sequence[str], library: Library, masking: Masking
) -> dict[str, Any]:
    assert document is not None
    span = Span(*place[1:])
    passages = [stored.entry.passage for stored in library.index.passages_in(document.id)]
    heading = next((one.heading for one in passages if one.span.begin <= span.begin < one.span.end), None) or ""
    return {
        "document": document.id,
        "title": masking.short(document.title, document.metadata),
        "heading": masking.short(heading.split(" | ")[-1], document.metadata),
        "text": span.of(masking.text(document)),
        **({"entities": list(answered), "aspects": [FEEDBACK]} if answered else {}),
    }

"""Export feedback as the pairs that `capr train` reads: queries with passages that answer them, or do not."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any

from capr.annotate import Query
from capr.documents import Document, Span
from capr.search import Library
from capr.serve.database import Judgement
from capr.serve.masking import Masking

FEEDBACK = "feedback"  # the aspect of every label, because a label is a whole query
Location = tuple[str, int, int]  # the id of a document, and a span


def pairs(judgements: Sequence[Judgement], library: Library, masking: Masking) -> tuple[bytes, list[str]]:
    """Return the file of pairs, and the ids of its documents.

    If users disagree, the last judgement counts. The file has no passages whose documents were removed, and no queries
    without a passage that answers, because a model cannot learn from them.
    """
    by_query: dict[str, dict[Location, Judgement]] = {}
    for judgement in judgements:
        query = Query(judgement.query, judgement.entity, judgement.aspect)
        location = judgement.document, judgement.begin, judgement.end
        by_query.setdefault(query.wording, {})[location] = judgement
    ids = {judgement.document for judgements in by_query.values() for judgement in judgements.values()}
    documents = {id: library.index.document(id) for id in ids}
    numbers: dict[Location, int] = {}
    labels: dict[int, list[str]] = {}
    draws: list[dict[str, Any]] = []
    for wording, judged in by_query.items():
        judged = {location: judgement for location, judgement in judged.items() if _exists(location, documents)}
        if not any(judgement.answers for judgement in judged.values()):
            continue
        for location in judged:
            numbers.setdefault(location, len(numbers))
        negatives = [numbers[location] for location, judgement in judged.items() if not judgement.answers]
        for location, judgement in judged.items():
            if judgement.answers:
                labels.setdefault(numbers[location], []).append(wording)
                draws.append(_draw(judgement, wording, numbers[location], negatives))
    lines = [
        {"text": _text(location, documents[location[0]], labels.get(number, []), library, masking)}
        for location, number in numbers.items()
    ]
    lines += [{"draw": draw} for draw in draws]
    content = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    exported_ids = list(dict.fromkeys(id for id, _, _ in numbers))
    return gzip.compress(content.encode("utf-8", "replace"), mtime=0), exported_ids


def _exists(location: Location, documents: Mapping[str, Document | None]) -> bool:
    id, _, end = location
    document = documents[id]
    return document is not None and end <= len(document.text)


def _draw(judgement: Judgement, wording: str, passage: int, negatives: Sequence[int]) -> dict[str, Any]:
    query: dict[str, Any] = {"questions": [judgement.query or wording]}
    if not judgement.query and judgement.entity and judgement.aspect:
        query = {"names": [judgement.entity], "heading": judgement.aspect}
    return {"passage": passage, "entity": wording, "aspect": FEEDBACK, **query, "negatives": list(negatives)}


def _text(
    location: Location, document: Document | None, wordings: Sequence[str], library: Library, masking: Masking
) -> dict[str, Any]:
    assert document is not None
    _, begin, end = location
    span = Span(begin, end)
    passages = [stored.entry.passage for stored in library.index.passages_in(document.id)]
    heading = next((passage.heading for passage in passages if passage.span.begin <= begin < passage.span.end), None)
    heading = heading or ""
    return {
        "document": document.id,
        "title": masking.short_text(document.title, document.metadata),
        "heading": masking.short_text(heading.split(" | ")[-1], document.metadata),
        "text": span.of(masking.text(document)),
        **({"entities": list(wordings), "aspects": [FEEDBACK]} if wordings else {}),
    }

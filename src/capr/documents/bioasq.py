"""The reader of BioASQ question files: one document per question, with its gold answers and snippets as metadata."""

from __future__ import annotations

from capr.documents.document import Document
from capr.documents.format import Format, Records
from capr.documents.json_stream import records, values_at
from capr.documents.problem import Problem
from capr.documents.source import Source

FIX = "use the file that BioASQ publishes: questions with id, body, documents and snippets"


def read(source: Source) -> Records:
    """Yield one document per question. Its text is the question, because the file does not contain the abstracts."""
    for record in records(source, values_at("questions"), fix=FIX):
        if isinstance(record, Problem):
            yield record
            continue
        number, question = record.number, record.value
        if not isinstance(question, dict) or not isinstance(question.get("body"), str):
            yield Problem("the question has no body", FIX, record=number)
            continue
        empty: tuple[object, ...] = (None, "", [], {})
        metadata = {k: v for k, v in question.items() if k not in ("id", "body") and v not in empty}
        identifier = source.document_id(number) if question.get("id") in (None, "") else str(question["id"])
        yield Document(identifier, question["body"], metadata=metadata)


def recognises(name: str, head: str) -> bool:
    return head.lstrip()[:1] == "{" and '"questions"' in head and '"body"' in head


FORMAT = Format("bioasq", "BioASQ question JSON, a document per question", recognises, read)

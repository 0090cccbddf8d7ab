"""WikiSectionQA: a query for each labelled section of an article, ⟨title, section label⟩.

Reads WikiSectionQA's and WikiSection's JSON, and JSON Lines of articles whose sections have labels. Of the last, which
are not a published test, a fifth of the articles is the test, and a section is one with its subsections (`A | B`), as
in WikiSection.

Reference: Arnold et al. (CDV), 2020: abstracts are asked for as `information`, sections labelled `other` not at all;
sections of one article with the same label answer the same query. Candidates as for MedQuAD.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from capr.annotate.query import heading
from capr.documents import Annotation, CaprError, Document, Span, read
from capr.evaluate.split import is_test
from capr.evaluate.task import Asked, Task, candidates
from capr.evaluate.terms import Terms
from capr.segment import opening

SHORTEST = 10
ABSTRACTS = ("abstract", "introduction", "summary", "")


def load(data: Path, tested: Callable[[str], bool] = is_test) -> Task:
    """The test, from a file, or from a folder that has one; of JSON Lines the articles whose ids are `tested`."""
    found = [data] if data.is_file() else [*sorted(data.glob("*.json")), *sorted(data.glob("articles.jsonl"))]
    files = [path for path in found if path.name != "aliases.json"]
    if not files:
        fix = "name WikiSectionQA's or WikiSection's JSON, or JSON Lines of articles with labelled sections"
        raise CaprError(f"{data} has no articles. Fix: {fix}.")
    passages: dict[str, str] = {}
    openings: dict[str, str] = {}
    members: dict[str, list[str]] = {}
    document_of: dict[str, str] = {}
    documents: dict[str, Document] = {}
    spans: dict[str, tuple[str, Span]] = {}
    answers: dict[tuple[str, str], list[str]] = {}
    for document in read(files, strict=True):
        sections = document.annotated("section")
        if document.metadata.get("file", "").endswith(".jsonl"):
            if not tested(document.id):
                continue
            sections = whole(sections)
        for number, section in enumerate(sections):
            text, id = document[section.span].strip(), f"{document.id}#{number}"
            if len(text) < SHORTEST:
                continue
            passages[id] = text
            openings[id] = opening(document.text, section.span.begin)
            document_of[id] = document.id
            documents[document.id] = document
            spans[id] = document.id, section.span
            members.setdefault(document.id, []).append(id)
            if (aspect := label(section)) is not None:
                entity = str(section.value.get("entity") or document.title)
                answers.setdefault((entity, aspect), []).append(id)
    if not answers:
        fix = "give sections a label such as disease.symptom"
        raise CaprError(f"no section in {files[0]} has a label. Fix: {fix}.")
    index = Terms(passages)
    asked = []
    for number, ((entity, aspect), relevant) in enumerate(answers.items(), 1):
        best = index.best(re.sub("[/:-]", " ", f"{entity} {heading(aspect)}"), 64)
        listed = candidates(relevant, best, members, document_of)
        asked.append(Asked(str(number), entity, heading(aspect), "", frozenset(relevant), listed, {"aspect": aspect}))
    return Task("wikisection", passages, asked, openings, documents, spans)


def whole(sections: Iterable[Annotation]) -> list[Annotation]:
    """Sections with their subsections, under the label of the first."""
    found: list[Annotation] = []
    for section in sections:
        top = str(section.value.get("heading", "")).split(" | ")[0]
        if found and top and found[-1].value.get("heading") == top:
            found[-1] = replace(found[-1], span=Span(found[-1].span.begin, section.span.end))
        else:
            found.append(replace(section, value={**section.value, "heading": top}))
    return found


def label(section: Annotation) -> str | None:
    """What a section is asked for by; None if it is not."""
    value = section.value
    said = str(value.get("aspect") or value.get("label") or "").rpartition(".")[2].lower()
    if said in ("abstract", "introduction"):
        return "information"
    if not said and not value.get("entity") and str(value.get("heading") or "").lower() in ABSTRACTS:
        return "information"
    return said if said and said != "other" else None

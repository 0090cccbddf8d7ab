"""WikiSectionQA: a query for each labelled section of an article, ⟨title, section label⟩.

This reads WikiSectionQA's and WikiSection's JSON, and JSON Lines of articles whose sections have labels. JSON Lines are
not a published test: a fifth of the articles is the test, and a section includes its subsections (`A | B`), as in
WikiSection.

The label of an abstract is `information`, and sections labelled `other` have no query. Sections of one article with the
same label answer the same query. The candidates are chosen as for MedQuAD.

Reference: Arnold et al. (CDV), 2020.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from capr.documents import Annotation, CaprError, Document, Span, read
from capr.evaluate.protocol import CandidateProtocol, ReadDocuments
from capr.evaluate.task import Task, TaskQuery, candidates
from capr.evaluate.term_baselines import Terms
from capr.segment import opening
from capr.segment.aspects import heading
from capr.supervise.split import is_test

SHORTEST = 10  # minimum characters of a candidate
ABSTRACTS = ("abstract", "introduction", "summary", "")


@dataclass(frozen=True, kw_only=True)
class WikiSection(CandidateProtocol):
    """Sections of articles, with their titles and labels as queries, as in CDV.

    --data is WikiSectionQA's or WikiSection's JSON, or articles as JSON Lines. A fifth of the JSON Lines is the test.

    Example: capr evaluate wikisection --data articles.jsonl --model bm25
    """

    whole: ClassVar[bool] = True

    def task(self, read: ReadDocuments) -> Task:
        return load(self.data)


def load(data: Path, tested: Callable[[str], bool] = is_test) -> Task:
    """Load the test from a file, or from a folder that has one; `tested` chooses the articles of JSON Lines by id."""
    paths = [data] if data.is_file() else [*sorted(data.glob("*.json")), *sorted(data.glob("articles.jsonl"))]
    files = [path for path in paths if path.name != "aliases.json"]
    if not files:
        fix = "name WikiSectionQA's or WikiSection's JSON, or JSON Lines of articles with labelled sections"
        raise CaprError(f"{data} has no articles. Fix: {fix}.")
    passages: dict[str, str] = {}
    openings: dict[str, str] = {}
    ids_by_document: dict[str, list[str]] = {}
    document_of: dict[str, str] = {}
    documents: dict[str, Document] = {}
    spans: dict[str, tuple[str, Span]] = {}
    answers: dict[tuple[str, str], list[str]] = {}
    for document in read(files, strict=True):
        sections = document.annotated("section")
        if document.metadata.get("file", "").endswith(".jsonl"):
            if not tested(document.id):
                continue
            sections = with_subsections(sections)
        for number, section in enumerate(sections):
            text, id = document[section.span].strip(), f"{document.id}#{number}"
            if len(text) < SHORTEST:
                continue
            passages[id] = text
            openings[id] = opening(document.text, section.span.begin)
            document_of[id] = document.id
            documents[document.id] = document
            spans[id] = document.id, section.span
            ids_by_document.setdefault(document.id, []).append(id)
            if (aspect := label(section)) is not None:
                entity = str(section.value.get("entity") or document.title)
                answers.setdefault((entity, aspect), []).append(id)
    if not answers:
        fix = "give sections a label such as disease.symptom"
        raise CaprError(f"no section in {files[0]} has a label. Fix: {fix}.")
    index = Terms(passages)
    queries = []
    for number, ((entity, aspect), relevant) in enumerate(answers.items(), 1):
        best_ids = index.best(re.sub("[/:-]", " ", f"{entity} {heading(aspect)}"), 64)
        candidate_ids = candidates(relevant, best_ids, ids_by_document, document_of)
        queries.append(
            TaskQuery(str(number), entity, heading(aspect), "", frozenset(relevant), candidate_ids, {"aspect": aspect})
        )
    return Task("wikisection", passages, queries, openings, documents, spans)


def with_subsections(sections: Iterable[Annotation]) -> list[Annotation]:
    """Merge sections with their subsections; the first one gives the label."""
    merged: list[Annotation] = []
    for section in sections:
        top = str(section.value.get("heading", "")).split(" | ")[0]
        if merged and top and merged[-1].value.get("heading") == top:
            merged[-1] = replace(merged[-1], span=Span(merged[-1].span.begin, section.span.end))
        else:
            merged.append(replace(section, value={**section.value, "heading": top}))
    return merged


def label(section: Annotation) -> str | None:
    """Return the label of a section, or None if the section has no query."""
    value = section.value
    name = str(value.get("aspect") or value.get("label") or "").rpartition(".")[2].lower()
    if name in ("abstract", "introduction"):
        return "information"
    if not name and not value.get("entity") and str(value.get("heading") or "").lower() in ABSTRACTS:
        return "information"
    return name if name and name != "other" else None

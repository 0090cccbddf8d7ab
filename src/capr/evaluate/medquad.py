"""The MedQuAD test of CDV and CAPR: 3,293 queries about diseases, each with at most 64 candidate passages.

Reference: Arnold et al., Learning Contextualized Document Representations for Healthcare Answer Retrieval (CDV), 2020,
with its released annotations and code; Grundmann et al. (CAPR) measure on the same candidates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from capr.documents import CaprError, Document, Span, read
from capr.documents.outline import join_parts
from capr.evaluate.protocol import CandidateProtocol, ReadDocuments
from capr.evaluate.task import Task, TaskQuery, candidates
from capr.evaluate.term_baselines import Terms
from capr.segment import opening

SHORTEST = 10  # minimum characters of a candidate
SOURCES = "MedQuAD_test_sources.tsv"
ANNOTATIONS = "MedQuAD_test_annotations.json"


@dataclass(frozen=True, kw_only=True)
class MedQuad(CandidateProtocol):
    """MedQuAD's test by the protocol of CDV and CAPR: 3,293 queries, at most 64 candidates each.

    --data is a folder with medquad (the XML files) and cdv (the annotations).

    Example: capr evaluate medquad --data data --model bm25
    """

    whole: ClassVar[bool] = True

    def task(self, read: ReadDocuments) -> Task:
        return load(self.data)


def load(data: Path) -> Task:
    """Load the test from a folder that has `medquad` (the XML files) and `cdv` (the annotations)."""
    cdv = data / "cdv"
    for path in (cdv / SOURCES, cdv / ANNOTATIONS, data / "medquad"):
        if not path.exists():
            fix = "name with --data the folder that holds medquad (its XML files) and cdv (the annotations)"
            raise CaprError(f"there is no {path}. Fix: {fix}.")
    files = [data / "medquad" / path for path in test_files(cdv / SOURCES)]
    documents = {document.id: document for document in layout(read(files, format="medquad"))}
    annotated = json.loads((cdv / ANNOTATIONS).read_text("utf-8"))
    passages, openings, document_of, source_of, spans = {}, {}, {}, {}, {}
    for record in annotated["documents"]:
        text = documents[record["id"]].text if record["id"] in documents else ""
        if len(text) != record["length"]:
            fix = "use MedQuAD as published"
            raise CaprError(f"{record['id']} is not the document that was annotated (its length differs). Fix: {fix}.")
        for passage in record["annotations"]:
            id = passage["id"]
            passages[id] = text[passage["begin"] : passage["begin"] + passage["length"]]
            openings[id] = opening(text, passage["begin"])
            document_of[id], source_of[id] = record["id"], record["type"].split("_")[0]
            spans[id] = record["id"], Span(passage["begin"], passage["begin"] + passage["length"])
    passages = {id: text for id, text in passages.items() if len(text) >= SHORTEST}
    ids_by_document: dict[str, list[str]] = {}
    for id in passages:
        ids_by_document.setdefault(document_of[id], []).append(id)
    index = Terms(passages)
    queries = []
    for number, record in enumerate(annotated["queries"], 1):
        (pair,) = record["annotations"]
        relevant = [result["id"] for result in record["results"]]
        best_ids = index.best(re.sub("[/:-]", " ", f"{pair['entity']} {pair['aspectHeading']}"), 64)
        groups = {"aspect": pair["aspect"], "source": source_of[relevant[0]]}
        candidate_ids = candidates(relevant, best_ids, ids_by_document, document_of)
        queries.append(
            TaskQuery(
                str(number),
                pair["entity"],
                pair["aspectHeading"],
                record["text"],
                frozenset(relevant),
                candidate_ids,
                groups,
            )
        )
    return Task("medquad", passages, queries, openings, documents, spans)


def test_files(sources: Path) -> list[str]:
    """Read the paths of the test documents in MedQuAD's folder."""
    lines = sources.read_text("utf-8").splitlines()
    return [re.sub(r"^.*MedQuAD-master/", "", line.split("\t")[0]) for line in lines if line.strip()]


def layout(documents: Iterable[Document]) -> Iterator[Document]:
    """Yield MedQuAD documents with the text that CDV's annotations refer to, exact to the character.

    These are the disorders with an answer. The text joins the stripped answers: each ends with one line break, and
    every " - " in it begins a new line.
    """
    for document in documents:
        sections = document.annotated("section")
        if document.metadata.get("semantic_group") != "Disorders" or not sections:
            continue
        passages = [(document[s.span].strip().replace(" - ", "\n- ") + "\n", dict(s.value)) for s in sections]
        text, annotations = join_parts(passages, "")
        id = f"{document.metadata['source']}_{document.metadata['number']}"
        yield Document(id, text, document.title, document.metadata, annotations)

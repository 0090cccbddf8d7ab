"""The MedQuAD test of CDV and CAPR: 3,293 queries about diseases, each with at most 64 candidate passages.

Reference: Arnold et al., Learning Contextualized Document Representations for Healthcare Answer Retrieval (CDV), 2020,
with its released annotations and code; Grundmann et al. (CAPR) measure on the same candidates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from capr.documents import CaprError, Document, Span, read
from capr.documents.outline import joined
from capr.evaluate.task import Asked, Task, candidates
from capr.evaluate.terms import Terms
from capr.segment import opening

SHORTEST = 10  # characters of a candidate
SOURCES = "MedQuAD_test_sources.tsv"
ANNOTATIONS = "MedQuAD_test_annotations.json"


def load(data: Path) -> Task:
    """The test, from a folder that has `medquad` (the XML files) and `cdv` (the annotations)."""
    cdv = data / "cdv"
    for needed in (cdv / SOURCES, cdv / ANNOTATIONS, data / "medquad"):
        if not needed.exists():
            fix = "name with --data the folder that holds medquad (its XML files) and cdv (the annotations)"
            raise CaprError(f"there is no {needed}. Fix: {fix}.")
    files = [data / "medquad" / path for path in test_files(cdv / SOURCES)]
    documents = {document.id: document for document in layout(read(files, format="medquad"))}
    annotated = json.loads((cdv / ANNOTATIONS).read_text("utf-8"))
    passages, openings, document_of, source, spans = {}, {}, {}, {}, {}
    for record in annotated["documents"]:
        text = documents[record["id"]].text if record["id"] in documents else ""
        if len(text) != record["length"]:
            fix = "take MedQuAD as it was published"
            raise CaprError(f"{record['id']} is not the document that was annotated (its length differs). Fix: {fix}.")
        for passage in record["annotations"]:
            id = passage["id"]
            passages[id] = text[passage["begin"] : passage["begin"] + passage["length"]]
            openings[id] = opening(text, passage["begin"])
            document_of[id], source[id] = record["id"], record["type"].split("_")[0]
            spans[id] = record["id"], Span(passage["begin"], passage["begin"] + passage["length"])
    passages = {id: text for id, text in passages.items() if len(text) >= SHORTEST}
    members: dict[str, list[str]] = {}
    for id in passages:
        members.setdefault(document_of[id], []).append(id)
    index = Terms(passages)
    asked = []
    for number, record in enumerate(annotated["queries"], 1):
        (about,) = record["annotations"]
        relevant = [result["id"] for result in record["results"]]
        found = index.best(re.sub("[/:-]", " ", f"{about['entity']} {about['aspectHeading']}"), 64)
        groups = {"aspect": about["aspect"], "source": source[relevant[0]]}
        listed = candidates(relevant, found, members, document_of)
        asked.append(
            Asked(
                str(number),
                about["entity"],
                about["aspectHeading"],
                record["text"],
                frozenset(relevant),
                listed,
                groups,
            )
        )
    return Task("medquad", passages, asked, openings, documents, spans)


def test_files(sources: Path) -> list[str]:
    """The paths of the test documents under MedQuAD's folder."""
    lines = sources.read_text("utf-8").splitlines()
    return [re.sub(r"^.*MedQuAD-master/", "", line.split("\t")[0]) for line in lines if line.strip()]


def layout(documents: Iterable[Document]) -> Iterator[Document]:
    """MedQuAD documents as CDV evaluates on them (its annotations fit this text to the character).

    Only disorders with an answer; each answer stripped, " - " begun on a new line, ended by one line break; answers
    follow each other without anything between.
    """
    for document in documents:
        sections = document.annotated("section")
        if document.metadata.get("semantic_group") != "Disorders" or not sections:
            continue
        passages = [(document[s.span].strip().replace(" - ", "\n- ") + "\n", dict(s.value)) for s in sections]
        text, annotations = joined(passages, "")
        identifier = f"{document.metadata['source']}_{document.metadata['number']}"
        yield Document(identifier, text, document.title, document.metadata, annotations)

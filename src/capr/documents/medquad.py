"""MedQuAD (Ben Abacha and Demner-Fushman 2019): XML files with questions and answers about one topic, the Focus.

The answers are the passages of the document. The questions are not part of its text: they are what people search with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from capr.documents.document import Annotation, Document, Span
from capr.documents.format import Format, Records
from capr.documents.problem import Problem
from capr.documents.source import Source

BETWEEN_ANSWERS = "\n\n"


def read(source: Source) -> Records:
    """One document per file; every answer that has words is a section with its question, aspect and ids."""
    try:
        root = fromstring(source.text().encode("utf-8", "surrogatepass"))
    except ParseError as error:
        line, column = error.position
        fix = "repair the XML at that place, or take the file as it is published"
        yield Problem(f"malformed XML at column {column + 1} ({error.msg.split(':')[0]})", fix, line=line)
        return
    except DefusedXmlException as error:
        fix = "remove the DOCTYPE and its entities; capr never expands them"
        yield Problem(f"the XML declares entities ({type(error).__name__})", fix, line=1)
        return
    document = _document(root, source)
    if document is None:
        fix = "use --format for another format; MedQuAD has <QAPairs>"
        yield Problem(f"the XML <{root.tag}> has no <QAPairs>", fix, line=1)
    else:
        yield document


def _document(root: Element, source: Source) -> Document | None:
    """The document of a file in any of MedQuAD's three dialects, which differ in case and names of the tags."""
    by_tag: dict[str, list[Element]] = {}
    for element in root.iter():
        by_tag.setdefault(element.tag.lower(), []).append(element)
    if "qapairs" not in by_tag:
        return None
    pairs = by_tag.get("qapair") or by_tag.get("pair") or []
    collection = root.get("source") or root.get("corpus") or ""
    number = root.get("id") or root.get("docid") or root.get("fid") or ""
    stem = PurePosixPath(source.name).stem
    if stem.startswith(number):  # some files are parts of a document and repeat its number
        number = stem
    words = {
        tag: [text for element in elements if (text := _words(element))] for tag, elements in by_tag.items()
    }
    focus = " ".join(words.get("focus") or words.get("doctitle-focus") or [])
    metadata: dict[str, Any] = {
        "source": collection,
        "type": "Health article",
        "url": root.get("url"),
        "entity": focus,
        "cuis": words.get("cui"),
        "semantic_group": " ".join(words.get("semanticgroup", [])),
        "synonyms": words.get("synonym"),
    }
    parts: list[str] = []
    sections = []
    begin = 0
    for pair in pairs:
        inside = {element.tag.lower(): element for element in pair}
        answer = "".join(inside["answer"].itertext()) if "answer" in inside else ""
        question = inside.get("question")
        if not answer.strip():
            continue
        begin += len(BETWEEN_ANSWERS) if parts else 0
        parts.append(answer)
        value = {"heading": _words(question), "aspect": "", "id": "", "entity": focus}
        if question is not None:
            value |= {"aspect": question.get("qtype", ""), "id": f"{collection}_{question.get('qid', '')}"}
        sections.append(Annotation("section", Span(begin, begin + len(answer)), value))
        begin += len(answer)
    kept = {name: value for name, value in metadata.items() if value}
    return Document(f"{collection}_{number}", BETWEEN_ANSWERS.join(parts), focus, kept, tuple(sections))


def _words(element: Element | None) -> str:
    return "" if element is None or element.text is None else element.text.strip()


def recognises(name: str, head: str) -> bool:
    return "<qapairs" in head.lower() and head.lstrip()[:1] == "<"


FORMAT = Format("medquad", "MedQuAD XML: a topic's questions and answers", recognises, read)


def cdv_layout(documents: Iterable[Document]) -> Iterator[Document]:
    """MedQuAD documents as the CDV paper evaluates on them (its annotations fit this text to the character).

    Only disorders with an answer; each answer stripped, " - " begun on a new line, ended by one line break; answers
    follow each other without anything between. Labels as the original reader mends them: support groups of
    NIHSeniorHealth are `treatment`; GHR's `treatment` passages get no aspect, so they are candidates but no answers.

    Reference: Arnold et al., Learning Contextualized Document Representations for Healthcare Answer Retrieval, 2020.
    """
    for document in documents:
        sections = document.annotated("section")
        if document.metadata.get("semantic_group") != "Disorders" or not sections:
            continue
        entity = document.title.replace("What I need to know about ", "")
        parts, passages, begin = [], [], 0
        for section in sections:
            text = document[section.span].strip().replace(" - ", "\n- ") + "\n"
            aspect = section.value["aspect"]
            if aspect == "support groups" and document.metadata.get("source") == "NIHSeniorHealth":
                aspect = "treatment"
            elif aspect == "treatment" and document.metadata.get("source") == "GHR":
                aspect = None
            span = Span(begin, begin + len(text))
            passages.append(
                Annotation("section", span, {**section.value, "entity": entity, "aspect": aspect})
            )
            parts.append(text)
            begin = span.end
        yield Document(document.id, "".join(parts), entity, document.metadata, tuple(passages))

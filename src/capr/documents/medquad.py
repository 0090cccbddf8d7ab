"""The reader of MedQuAD (Ben Abacha and Demner-Fushman 2019): XML with questions and answers about a topic, the Focus.

The answers become the passages of the document. Its text leaves out the questions, because people search with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any
from xml.etree.ElementTree import Element, ParseError

from capr.documents.document import Document
from capr.documents.format import Format, Records
from capr.documents.outline import join_parts
from capr.documents.problem import Notice, Problem
from capr.documents.source import Source

BETWEEN_ANSWERS = "\n\n"


def read(source: Source) -> Records:
    """Yield one document per file. Every answer with words is a section with its question, aspect and ids."""
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        root = fromstring(source.text())
    except ParseError as error:
        line, column = error.position
        fix = "repair the XML there, or use the published file"
        yield Problem(f"malformed XML at column {column + 1} ({str(error).split(':')[0]})", fix, line=line)
        return
    except DefusedXmlException as error:
        fix = "remove the DOCTYPE and its entities; capr never expands them"
        yield Problem(f"the XML declares entities ({type(error).__name__})", fix, line=1)
        return
    except (UnicodeEncodeError, ValueError) as error:
        yield Problem(f"wrong encoding ({error})", "save the file as UTF-8")
        return
    by_tag: dict[str, list[Element]] = {}
    for element in root.iter():
        by_tag.setdefault(element.tag.lower(), []).append(element)
    if "qapairs" not in by_tag:
        fix = "use --format for another format; MedQuAD has <QAPairs>"
        yield Problem(f"the XML <{root.tag}> has no <QAPairs>", fix, line=1)
        return
    document, unanswered = _document(root, by_tag, source)
    if unanswered and document.text:
        ids = ", ".join(unanswered[:5]) + (", ..." if len(unanswered) > 5 else "")
        yield Notice(f"questions without an answer: {ids}", "there is nothing to fix", record=document.id)
    yield document


def _document(root: Element, by_tag: Mapping[str, list[Element]], source: Source) -> tuple[Document, list[str]]:
    """Return the document of a file, and the ids of the questions without an answer.

    The file may have any of MedQuAD's three dialects, which differ in the case and names of the tags.
    """
    collection = root.get("source") or root.get("corpus") or ""
    number = root.get("id") or root.get("docid") or root.get("fid") or ""
    stem = PurePosixPath(source.name).stem
    is_part = stem.startswith(f"{number}_")  # some files hold a part of a document and have its number
    identifier = "_".join(filter(None, (collection, stem if is_part or not number else number)))
    words = {tag: [text for element in elements if (text := _words(element))] for tag, elements in by_tag.items()}
    focus = " ".join(words.get("focus") or words.get("doctitle-focus") or [])
    metadata: dict[str, Any] = {
        "source": collection,
        "number": number,
        "type": "Health article",
        "url": root.get("url"),
        "entity": focus,
        "cuis": words.get("cui"),
        "semantic_group": " ".join(words.get("semanticgroup", [])),
        "synonyms": words.get("synonym"),
    }
    parts: list[tuple[str, dict[str, str]]] = []
    unanswered = []
    for pair in by_tag.get("qapair") or by_tag.get("pair") or []:
        question = next((element for element in pair if element.tag.lower() == "question"), None)
        value = {"heading": _words(question), "aspect": "", "id": "", "entity": focus}
        if question is not None:
            value |= {"aspect": question.get("qtype", ""), "id": f"{collection}_{question.get('qid', '')}"}
        answers = ["".join(element.itertext()) for element in pair if element.tag.lower() == "answer"]
        answers = [answer for answer in answers if answer.strip()]
        if not answers:
            unanswered.append(value["id"] or value["heading"])
        parts += [(answer, value) for answer in answers]
    text, sections = join_parts(parts, BETWEEN_ANSWERS)
    metadata = {name: value for name, value in metadata.items() if value}
    return Document(identifier, text, focus, metadata, sections), unanswered


def _words(element: Element | None) -> str:
    return "" if element is None else "".join(element.itertext()).strip()


def recognises(name: str, head: str) -> bool:
    return "<qapairs" in head.lower() and head.lstrip()[:1] == "<"


FORMAT = Format("medquad", "MedQuAD XML: a topic's questions and answers", recognises, read)

"""The reader of PDF files with a text layer. It needs the extra `capr[pdf]`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from capr.documents.document import Document
from capr.documents.format import Format, Records
from capr.documents.outline import join_parts
from capr.documents.problem import Notice, Problem
from capr.documents.source import Source

HEADER_WITHIN = 1024  # bytes at the start of the file in which other readers also accept the header
NOT_INSTALLED = Problem("reading PDF needs pypdfium2, which is not installed", "pip install 'capr[pdf]'")
NO_TEXT_LAYER = Problem(
    "the PDF has no text layer; it is probably a scan",
    "run it through OCR (for example ocrmypdf) and read the result",
)


def extract(data: bytes) -> list[Problem | Document]:
    """Extract the text of a PDF, with a form feed between two pages.

    Returns:
        Problems and notices about single pages, and as the last element the document, which has the pages as
        annotations. If the PDF yields no document, all elements are problems.
    """
    try:
        import pypdfium2
    except ImportError:
        return [NOT_INSTALLED]
    try:
        pdf = pypdfium2.PdfDocument(data[max(0, data.find(b"%PDF-", 0, HEADER_WITHIN)) :])
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            return [Problem("the PDF is protected by a password", "save a copy without the password")]
        return [Problem(f"it is not a readable PDF ({error})", "export it again, or check that the copy is complete")]
    texts, problems = [], []
    try:
        for number in range(1, len(pdf) + 1):
            try:
                text = _page_text(pdf, number - 1)
            except pypdfium2.PdfiumError as error:
                text = ""
                fix = "export the PDF again; the other pages were read"
                problems.append(Problem(f"page {number} is damaged ({error})", fix))
            else:
                if not text.strip():
                    fix = "run it through OCR if it is a scan; the other pages were read"
                    problems.append(Notice(f"page {number} has no text", fix))
            texts.append(text)
    finally:
        pdf.close()
    if not any(text.strip() for text in texts):
        return [problem for problem in problems if not isinstance(problem, Notice)] or [NO_TEXT_LAYER]
    numbered = ((text, {"number": number}) for number, text in enumerate(texts, 1))
    text, pages = join_parts(numbered, "\f", kind="page")
    return [*problems, Document("", text, annotations=pages)]


def _page_text(pdf: Any, index: int) -> str:
    page = pdf[index]
    try:
        textpage = page.get_textpage()
        text = textpage.get_text_range()
        textpage.close()
    finally:
        page.close()
    return str(text).replace("\r\n", "\n")


def read(source: Source) -> Records:
    """Yield one document per file."""
    for item in extract(source.data()):
        yield replace(item, id=source.name) if isinstance(item, Document) else item


def recognises(name: str, head: str) -> bool:
    return "%PDF-" in head[:HEADER_WITHIN]


FORMAT = Format("pdf", "PDF with a text layer (needs capr[pdf])", recognises, read)

"""PDF with a text layer; needs the extra `capr[pdf]`."""

from __future__ import annotations

from capr.documents.document import Annotation, Document, Span
from capr.documents.format import Format, Records
from capr.documents.problem import Problem
from capr.documents.source import Source

NOT_INSTALLED = Problem("reading PDF needs pypdfium2, which is not installed", "pip install 'capr[pdf]'")
NO_TEXT_LAYER = Problem(
    "the PDF has no text layer; it is probably a scan",
    "run it through OCR (for example ocrmypdf) and read the result",
)


def extract(data: bytes) -> tuple[str, tuple[Annotation, ...]] | Problem:
    """The text of a PDF, page after page with a form feed between them, and where the pages are."""
    try:
        import pypdfium2
    except ImportError:
        return NOT_INSTALLED
    try:
        pdf = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            return Problem("the PDF is protected by a password", "save a copy without the password")
        return Problem(
            f"it is not a readable PDF ({error})", "export it again, or check that the copy is complete"
        )
    try:
        texts = []
        for page in pdf:
            textpage = page.get_textpage()
            texts.append(textpage.get_text_range().replace("\r\n", "\n"))
            textpage.close()
            page.close()
    finally:
        pdf.close()
    if not any(text.strip() for text in texts):
        return NO_TEXT_LAYER
    pages, begin = [], 0
    for number, text in enumerate(texts, 1):
        pages.append(Annotation("page", Span(begin, begin + len(text)), {"number": number}))
        begin += len(text) + 1
    return "\f".join(texts), tuple(pages)


def read(source: Source) -> Records:
    """One document per file."""
    result = extract(source.data())
    if isinstance(result, Problem):
        yield result
    else:
        yield Document(source.name, result[0], annotations=result[1])


def recognises(name: str, head: str) -> bool:
    return head.startswith("%PDF-")


FORMAT = Format("pdf", "PDF with a text layer (needs capr[pdf])", recognises, read)

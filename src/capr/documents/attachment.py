"""Attachments: documents inside a record, as bytes with a content type, often in base64."""

from __future__ import annotations

import base64
import binascii
import re
from typing import NamedTuple

from capr.documents import html, pdf
from capr.documents.document import Annotation
from capr.documents.problem import Problem

ASCII_BLANKS = re.compile(r"[ \t\r\n\f]+")


class AttachmentText(NamedTuple):
    """The text of an attachment, its annotations and a notice, which is empty if there is nothing to report."""

    text: str
    annotations: tuple[Annotation, ...] = ()
    notice: str = ""


def decode(data: str, content_type: str) -> AttachmentText | Problem:
    """Extract the text of a base64 attachment. The base64 may contain line breaks.

    Returns:
        The text, or a problem that says why there is none.
    """
    try:
        content = base64.b64decode(ASCII_BLANKS.sub("", data), validate=True)
    except (binascii.Error, ValueError) as error:
        return Problem(f"bad base64 ({error})", "encode the attachment again as standard base64")
    return extract(content, content_type)


def extract(content: bytes, content_type: str) -> AttachmentText | Problem:
    """Extract the text of an attachment.

    Args:
        content: the bytes of the attachment.
        content_type: a MIME type, perhaps with `charset=`. Text without a charset is read as UTF-8, or as Windows-1252
            if it is not valid UTF-8.

    Returns:
        The text, or a problem that says why there is none.
    """
    mime, *parameters = (part.strip().lower() for part in content_type.split(";"))
    if mime == "application/pdf":
        return _from_pdf(content)
    if mime not in ("", "text/plain", "text/html", "application/xhtml+xml", "text/markdown"):
        return Problem(f"an attachment of type {content_type!r} is not text", "send it as text/plain, text/html or PDF")
    charset = next((p.removeprefix("charset=").strip("\"'") for p in parameters if p.startswith("charset=")), "")
    notice = ""
    try:
        text = content.decode(charset or "utf-8")
    except UnicodeDecodeError as error:
        if charset:
            return Problem(f"wrong encoding: the bytes are not {charset} ({error.reason})", "correct the charset")
        try:
            text, notice = content.decode("cp1252"), "it is not UTF-8 and was read as Windows-1252"
        except UnicodeDecodeError:
            return Problem("wrong encoding: the bytes are neither UTF-8 nor Windows-1252", "encode the text as UTF-8")
    except (LookupError, ValueError):
        return Problem(f"unknown charset {charset!r}", "name a charset such as utf-8 in the content type")
    text = text.removeprefix("\ufeff")
    if mime in ("text/html", "application/xhtml+xml"):
        page = html.extract(text)
        unclosed = html.UNCLOSED.format(page.unclosed) if page.unclosed else ""
        return AttachmentText(page.text, page.sections, "; ".join(filter(None, (notice, unclosed))))
    return AttachmentText(text, (), notice)


def _from_pdf(content: bytes) -> AttachmentText | Problem:
    *problems, document = pdf.extract(content)
    if isinstance(document, Problem):
        return document
    notice = "; ".join(problem.fact for problem in problems if isinstance(problem, Problem))
    return AttachmentText(document.text, document.annotations, notice)

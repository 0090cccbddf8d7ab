"""Documents that come wrapped in a record: bytes with a content type, in base64."""

from __future__ import annotations

import base64
import binascii
import re

from capr.documents import html, pdf
from capr.documents.document import Annotation
from capr.documents.problem import Problem

ASCII_BLANKS = re.compile(r"[ \t\r\n\f]+")


def decode(data: str, content_type: str) -> tuple[str, tuple[Annotation, ...]] | Problem:
    """The text of an attachment and what it marks, or what is wrong with it.

    Args:
        data: base64; line breaks in it are allowed.
        content_type: a MIME type, perhaps with `charset=`; text without one is UTF-8, or Windows-1252 if it is not.
    """
    try:
        content = base64.b64decode(ASCII_BLANKS.sub("", data), validate=True)
    except (binascii.Error, ValueError) as error:
        return Problem(f"bad base64 ({error})", "encode the attachment again as standard base64")
    mime, *parameters = (part.strip().lower() for part in content_type.split(";"))
    if mime == "application/pdf":
        return pdf.extract(content)
    if mime not in ("", "text/plain", "text/html", "application/xhtml+xml", "text/markdown"):
        return Problem(
            f"an attachment of type {content_type!r} is not text", "send it as text/plain, text/html or PDF"
        )
    charset = next(
        (p.removeprefix("charset=").strip("\"'") for p in parameters if p.startswith("charset=")), ""
    )
    try:
        text = content.decode(charset or "utf-8-sig")
    except LookupError:
        return Problem(f"unknown charset {charset!r}", "name a charset such as utf-8 in the content type")
    except UnicodeDecodeError as error:
        if charset:
            return Problem(
                f"wrong encoding: the bytes are not {charset} ({error.reason})", "correct the charset"
            )
        try:
            text = content.decode("cp1252")
        except UnicodeDecodeError:
            return Problem(
                "wrong encoding: the bytes are neither UTF-8 nor Windows-1252", "encode the text as UTF-8"
            )
    if mime in ("text/html", "application/xhtml+xml"):
        text, _, sections = html.extract(text)
        return text, sections
    return text, ()

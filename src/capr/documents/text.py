"""Plain text: one file, one document."""

from __future__ import annotations

from capr.documents.document import Document
from capr.documents.format import Format, Records
from capr.documents.problem import Notice
from capr.documents.source import Source

BINARY = ("PK\x03\x04", "\x7fELF", "GIF8", "II*\x00", "MM\x00*", "PNG\r\n", "{\\rtf", "BM\x00")


def read(source: Source) -> Records:
    """The text of the file, to the character."""
    text = source.text()
    if text.lstrip()[:5] == "<?xml":
        yield Notice(
            "it is XML of a kind that capr does not know; it was read as text, tags and all", "export it as text"
        )
    elif text.count("\x00") > len(text) // 4:
        yield Notice("every other character is NUL; it is probably UTF-16 without its mark", "save it as UTF-8")
    yield Document(source.name, text)


def recognises(name: str, head: str) -> bool:
    """Anything that is not plainly something else; NUL characters are allowed in files that are called text."""
    if name.endswith((".txt", ".text")):
        return True
    return not head.startswith(BINARY) and "\x00" not in head and not name.endswith((".docx", ".doc", ".rtf", ".pdf"))


FORMAT = Format("text", "plain text, one document per file", recognises, read)

"""The reader of plain text: one document per file."""

from __future__ import annotations

from capr.documents.document import Document
from capr.documents.format import Format, Records
from capr.documents.problem import Notice
from capr.documents.source import Source

BINARY = ("PK\x03\x04", "\x7fELF", "GIF8", "II*\x00", "MM\x00*", "PNG\r\n", "{\\rtf", "BM\x00")
# Program code and settings, which a folder of notes may hold by mistake.
CODE = (".py", ".ipynb", ".js", ".ts", ".java", ".c", ".h", ".cpp", ".rs", ".go", ".sh", ".bat", ".css", ".sql")
SETTINGS = (".toml", ".yaml", ".yml", ".ini", ".cfg")


def read(source: Source) -> Records:
    """Yield one document with the exact text of the file, and a notice if it may not be a note."""
    text = source.text()
    if text.lstrip()[:5] == "<?xml":
        yield Notice("it is XML of an unknown kind; it was read as text, including the tags", "export it as text")
    elif text.count("\x00") > len(text) // 4:
        fact = "every other character is NUL; it is probably UTF-16 without a byte order mark"
        yield Notice(fact, "save it as UTF-8")
    elif source.name.lower().endswith(CODE + SETTINGS):
        yield Notice(
            "by its name, it is program code or settings; it was read as text", "leave it out if it is no note"
        )
    yield Document(source.name, text)


def recognises(name: str, head: str) -> bool:
    """Accept every file but known binary ones. A file named `.txt` or `.text` may contain NUL characters."""
    if name.endswith((".txt", ".text")):
        return True
    return not head.startswith(BINARY) and "\x00" not in head and not name.endswith((".docx", ".doc", ".rtf", ".pdf"))


FORMAT = Format("text", "plain text, one document per file", recognises, read)

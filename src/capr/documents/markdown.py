"""Markdown: the text as it stands, with its headings marked as sections."""

from __future__ import annotations

import re

from capr.documents.document import Document
from capr.documents.format import Format, Records
from capr.documents.outline import Heading, outline
from capr.documents.source import Source

FENCE = re.compile(r"^ {0,3}(```+|~~~+)[^\n]*\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
ATX = r"^ {0,3}(?P<marks>\#{1,6})[ \t]+(?P<atx>[^\r\n]*?)[ \t]*\#*[ \t]*\r?$"
SETEXT = r"^ {0,3}(?P<setext>[^\s\#>*+-][^\r\n]*?)[ \t]*\r?\n {0,3}(?P<rule>=+|-{2,})[ \t]*\r?$"
HEADING = re.compile(f"{ATX}|{SETEXT}", re.MULTILINE)


def headings(text: str) -> list[Heading]:
    """ATX (`## Heading`) and setext (underlined) headings outside fenced code."""
    fences = [match.span() for match in FENCE.finditer(text)]
    found = []
    for match in HEADING.finditer(text):
        if any(begin <= match.start() < end for begin, end in fences):
            continue
        if match["marks"]:
            level, words = len(match["marks"]), match["atx"]
        else:
            level, words = (1 if match["rule"][0] == "=" else 2), match["setext"]
        if words:
            found.append(Heading(match.start(), match.end(), words, level))
    return found


def read(source: Source) -> Records:
    """One document; its title is the first heading of the highest level."""
    text = source.text()
    found = headings(text)
    title = min(found, key=lambda heading: heading.level).words if found else ""
    yield Document(source.name, text, title, annotations=outline(found, len(text)))


def recognises(name: str, head: str) -> bool:
    """By name only: a `#` at the start of a line means other things in clinical notes."""
    return name.endswith((".md", ".markdown", ".mkd"))


FORMAT = Format("markdown", "Markdown, its headings as sections", recognises, read)

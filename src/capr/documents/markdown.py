"""Markdown: the text as it stands, with its headings marked as sections."""

from __future__ import annotations

import re

from capr.documents.document import Document
from capr.documents.format import Format, Records
from capr.documents.outline import Heading, outline
from capr.documents.source import Source

LINE = re.compile(r"[^\r\n]*(?:\r\n|[\r\n]|\Z)")
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
ATX = re.compile(r" {0,3}(#{1,6})(?=[ \t])")
UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*")
NOT_A_PARAGRAPH = re.compile(r" {4}|\t| {0,3}(?:[#>*+|-]|\d{1,9}[.)][ \t])")


def headings(text: str) -> list[Heading]:
    """ATX (`## Heading`) and setext (underlined) headings, outside fenced code and front matter."""
    found = []
    fence = ""
    before: tuple[int, str] | None = None  # the line above, if it may be underlined
    lines = [(match.start(), match[0].rstrip("\r\n")) for match in LINE.finditer(text) if match[0]]
    for begin, line in lines[_front_matter([line for _, line in lines]) :]:
        above, before = before, None
        marks = FENCE.match(line)
        if fence:
            if marks and marks[1].startswith(fence) and not line[marks.end() :].strip():
                fence = ""
        elif marks and (marks[1][0] == "~" or "`" not in line[marks.end() :]):
            fence = marks[1]
        elif atx := ATX.match(line):
            words = line[atx.end() :].strip()
            bare = words.rstrip("#")
            words = bare.rstrip() if not bare or bare[-1] in " \t" else words
            if words:
                found.append(Heading(begin, begin + len(line), words, len(atx[1])))
        elif above and (rule := UNDERLINE.fullmatch(line)):
            found.append(Heading(above[0], begin + len(line), above[1].strip(), 1 if rule[1][0] == "=" else 2))
        elif line.strip() and not NOT_A_PARAGRAPH.match(line):
            before = (begin, line)
    return found


def _front_matter(lines: list[str]) -> int:
    """How many lines at the start are metadata between two rules."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    return next((i + 1 for i, line in enumerate(lines[1:200], 1) if line.rstrip() in ("---", "...")), 0)


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

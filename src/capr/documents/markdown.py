"""The reader of Markdown: the unchanged text, with its headings as sections."""

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


def find_headings(text: str) -> list[Heading]:
    """Return the ATX (`## Heading`) and setext (underlined) headings outside fenced code and front matter."""
    headings = []
    fence = ""
    underlinable: tuple[int, str] | None = None  # the previous line, if it may be underlined
    lines = [(match.start(), match[0].rstrip("\r\n")) for match in LINE.finditer(text) if match[0]]
    for begin, line in lines[_front_matter([line for _, line in lines]) :]:
        previous, underlinable = underlinable, None
        marks = FENCE.match(line)
        if fence:
            if marks and marks[1].startswith(fence) and not line[marks.end() :].strip():
                fence = ""
        elif marks and (marks[1][0] == "~" or "`" not in line[marks.end() :]):
            fence = marks[1]
        elif atx := ATX.match(line):
            words = line[atx.end() :].strip()
            unclosed = words.rstrip("#")  # `## Heading ##` ends with a closing mark, `## C#` does not
            words = unclosed.rstrip() if not unclosed or unclosed[-1] in " \t" else words
            if words:
                headings.append(Heading(begin, begin + len(line), words, len(atx[1])))
        elif previous and (rule := UNDERLINE.fullmatch(line)):
            begin_of_previous, words = previous
            level = 1 if rule[1][0] == "=" else 2
            headings.append(Heading(begin_of_previous, begin + len(line), words.strip(), level))
        elif line.strip() and not NOT_A_PARAGRAPH.match(line):
            underlinable = (begin, line)
    return headings


def _front_matter(lines: list[str]) -> int:
    """Return the number of lines of the metadata block between two `---` lines at the start; 0 without such a block."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    return next((i + 1 for i, line in enumerate(lines[1:200], 1) if line.rstrip() in ("---", "...")), 0)


def read(source: Source) -> Records:
    """Yield one document. Its title is the first heading of the highest level."""
    text = source.text()
    headings = find_headings(text)
    title = min(headings, key=lambda heading: heading.level).words if headings else ""
    yield Document(source.name, text, title, annotations=outline(headings, len(text)))


def recognises(name: str, head: str) -> bool:
    """Check the name only, because a `#` at the start of a line means other things in clinical notes."""
    return name.endswith((".md", ".markdown", ".mkd"))


FORMAT = Format("markdown", "Markdown, its headings as sections", recognises, read)

"""HTML: the words a reader sees, line by line, with the headings marked as sections."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from capr.documents.document import Annotation, Document
from capr.documents.format import Format, Records
from capr.documents.outline import Heading, outline
from capr.documents.source import Source

HIDDEN = {"script", "style", "template", "head", "noscript", "svg"}
LINE = {"br", "div", "tr", "li", "dt", "dd", "section", "article", "header", "footer", "main", "nav", "option",
        "figcaption", "caption", "address", "thead", "tbody", "form", "hr"}  # fmt: skip
PARAGRAPH = {
    "p",
    "ul",
    "ol",
    "dl",
    "table",
    "pre",
    "blockquote",
    "figure",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
}
BLANKS = re.compile(r"[ \t\r\n\f]+")


class Extractor(HTMLParser):
    """Collects the visible text; blanks are collapsed as a browser would, non-breaking ones are kept."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.length = 0
        self.headings: list[Heading] = []
        self.title = ""
        self._hidden: list[str] = []
        self._in_title = False
        self._preformatted = 0
        self._heading_begin: tuple[int, int] | None = None  # in characters and in parts
        self._breaks = 2  # line breaks at the end of what was written
        self._blank = False  # a blank is due before the next word

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = True
        if tag in HIDDEN:
            self._hidden.append(tag)
            return
        if tag == "body":  # a head that was never closed ends here
            self._hidden.clear()
        if tag == "br":
            self._write("\n")
        elif tag in LINE:
            self._break(1)
        elif tag in PARAGRAPH:
            self._break(2)
        elif tag in ("td", "th") and not self._breaks:
            self._write("\t")
        if tag == "pre":
            self._preformatted += 1
        if tag == "li":
            self._write("- ")
        if re.fullmatch("h[1-6]", tag):
            self._heading_begin = (self.length, len(self.parts))

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        if tag in HIDDEN:
            if tag in self._hidden:
                del self._hidden[self._hidden.index(tag) :]
            return
        if re.fullmatch("h[1-6]", tag) and self._heading_begin is not None:
            begin, first_part = self._heading_begin
            words = "".join(self.parts[first_part:])
            if words.strip():
                begin += len(words) - len(words.lstrip())
                words = words.strip()
                self.headings.append(Heading(begin, begin + len(words), BLANKS.sub(" ", words), int(tag[1])))
            self._heading_begin = None
        if tag == "pre":
            self._preformatted = max(0, self._preformatted - 1)
        if tag in PARAGRAPH:
            self._break(2)
        elif tag in LINE:
            self._break(1)

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        if self._hidden:
            return
        if self._preformatted:
            self._write(data)
            return
        words = BLANKS.sub(" ", data)
        if words[:1] == " ":
            self._blank = True
        if words.strip(" "):
            if self._blank and not self._breaks and not self._ends_in_blank():
                self._write(" ")
            self._write(words.strip(" "))
            self._blank = words[-1] == " "

    def _ends_in_blank(self) -> bool:
        return bool(self.parts) and self.parts[-1][-1] in " \t\n"

    def _write(self, text: str) -> None:
        if text:
            self.parts.append(text)
            self.length += len(text)
            ending = len(text) - len(text.rstrip("\n"))
            self._breaks = self._breaks + ending if ending == len(text) else ending
            self._blank = False

    def _break(self, lines: int) -> None:
        if self.parts and self._breaks < lines:
            self._write("\n" * (lines - self._breaks))
        self._blank = False


def extract(markup: str) -> tuple[str, str, tuple[Annotation, ...]]:
    """The text, the title and the sections of an HTML page."""
    extractor = Extractor()
    extractor.feed(markup)
    extractor.close()
    text = "".join(extractor.parts).rstrip("\n")
    if text:
        text += "\n"
    title = BLANKS.sub(" ", extractor.title).strip()
    if not title and extractor.headings:
        title = min(extractor.headings, key=lambda heading: heading.level).words
    return text, title, outline(extractor.headings, len(text))


def read(source: Source) -> Records:
    """One document per page."""
    text, title, sections = extract(source.text())
    yield Document(source.name, text, title, annotations=sections)


def recognises(name: str, head: str) -> bool:
    start = head.lstrip()[:1000].lower()
    return (
        name.endswith((".html", ".htm", ".xhtml")) or start.startswith("<!doctype html") or "<html" in start
    )


FORMAT = Format("html", "HTML pages: the visible text, headings as sections", recognises, read)

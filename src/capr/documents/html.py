"""HTML: the words a reader sees, line by line, with the headings marked as sections."""

from __future__ import annotations

import codecs
import re
from html import unescape
from html.parser import HTMLParser
from typing import NamedTuple

from capr.documents.document import Annotation, Document
from capr.documents.format import Format, Records
from capr.documents.outline import Heading, outline
from capr.documents.problem import Notice
from capr.documents.source import Source

HIDDEN = {"script", "style", "template", "noscript", "svg"}
LINE = {"div", "tr", "li", "dt", "dd", "section", "article", "header", "footer", "main", "nav", "option",
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
BLOCK = LINE | PARAGRAPH
HEADING = re.compile("h[1-6]")
BLANKS = re.compile(r"[ \t\r\n\f]+")
CHARSET = re.compile(rb"<meta[^>]+charset=[\"' ]*([A-Za-z0-9_:.-]+)", re.IGNORECASE)


CUT = "a {} that is never closed hides the rest of the page"


class Extractor(HTMLParser):
    """Collects the visible text; blanks are collapsed as a browser would, non-breaking ones are kept."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.length = 0
        self.headings: list[Heading] = []
        self.title = ""
        self.hidden: list[str] = []  # the open elements that hide what is in them
        self._in_title = False
        self._preformatted = 0
        self._heading: tuple[int, int, int] | None = None  # an open one: its begin, in characters and parts; its level
        self._cells = 0  # of the current row of a table
        self._breaks = 2  # line breaks at the end of what was written
        self._blank = False  # a blank is due before the next word
        self._item = False  # the mark of a list item has just been written
        self._never_closed: set[str] = set()  # what was looked for to the end in vain

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.hidden and self.hidden[-1] == "svg" and tag in BLOCK:
            self.hidden.pop()  # as browsers do with an svg that was never closed
        if tag in HIDDEN:
            self.hidden.append(tag)
        if self.hidden:
            return
        if tag == "title":
            self._in_title = True
        elif tag == "br":
            self._write("\n")
        elif tag in ("td", "th"):
            if self._cells:
                self._write("\t")
            self._cells += 1
        elif tag in BLOCK:
            self._close_heading()
            self._break(2 if tag in PARAGRAPH else 1)
        if tag == "tr":
            self._cells = 0
        elif tag == "pre":
            self._preformatted += 1
        elif tag == "li":
            self._write("- ")
            self._item = True
        elif HEADING.fullmatch(tag):
            self._heading = (self.length, len(self.parts), int(tag[1]))

    def handle_endtag(self, tag: str) -> None:
        if tag in HIDDEN and tag in self.hidden:
            del self.hidden[self.hidden.index(tag) :]
        if self.hidden:
            return
        if tag == "title":
            self._in_title = False
        elif tag == "pre":
            self._preformatted = max(0, self._preformatted - 1)
        elif HEADING.fullmatch(tag):
            self._close_heading()
            self._heading = None  # even if it was empty
        if tag in BLOCK:
            self._break(2 if tag in PARAGRAPH else 1)

    def handle_data(self, data: str) -> None:
        if self.hidden:
            return
        if self._in_title:
            self.title += data
        elif self._preformatted:
            self._write(data)
        else:
            words = BLANKS.sub(" ", data)
            self._blank = self._blank or words[:1] == " "
            if words.strip(" "):
                if self._blank and not self._breaks and not self.parts[-1].endswith((" ", "\t", "\n")):
                    self._write(" ")
                self._write(words.strip(" "))
                self._blank = words[-1] == " "

    def parse_marked_section(self, i: int, report: int = 1) -> int:
        """`<![CDATA[ text ]]>` is text; any other such declaration is passed over (the base class fails on them)."""
        cdata = self.rawdata.startswith("<![CDATA[", i)
        closing = "]]>" if cdata else ">"
        end = -1 if closing in self._never_closed else self.rawdata.find(closing, i)
        if end < 0:
            self._never_closed.add(closing)
            return -1
        if cdata:
            self.handle_data(self.rawdata[i + len("<![CDATA[") : end])
        return end + len(closing)

    def _close_heading(self) -> None:
        if self._heading is None:
            return
        begin, first_part, level = self._heading
        words = "".join(self.parts[first_part:])
        if words.strip():
            begin += len(words) - len(words.lstrip())
            self.headings.append(Heading(begin, begin + len(words.strip()), BLANKS.sub(" ", words.strip()), level))
            self._heading = None

    def _write(self, text: str) -> None:
        if text:
            self.parts.append(text)
            self.length += len(text)
            ending = len(text) - len(text.rstrip("\n"))
            self._breaks = self._breaks + ending if ending == len(text) else ending
            self._blank = self._item = False

    def _break(self, lines: int) -> None:
        if self.parts and self._breaks < lines and not self._item:
            self._write("\n" * (lines - self._breaks))
        self._blank = False


class Page(NamedTuple):
    """What an HTML page shows; `cut` is an element or comment that was never closed and hides the rest."""

    text: str
    title: str
    sections: tuple[Annotation, ...]
    cut: str


def extract(markup: str) -> Page:
    """The text, the title and the sections of an HTML page."""
    extractor = Extractor()
    comment = markup.find("<!--", markup.rfind("-->") + 1)
    visible = markup if comment < 0 else markup[:comment]
    end_of_tags = visible.rfind(">") + 1  # what follows cannot be a tag, and the parser would try again and again
    extractor.feed(visible[:end_of_tags])
    extractor.close()
    extractor.handle_data(unescape(visible[end_of_tags:]))
    extractor._close_heading()
    text = "".join(extractor.parts).rstrip("\n")
    text += "\n" if text else ""
    title = BLANKS.sub(" ", extractor.title).strip()
    if not title and extractor.headings:
        title = min(extractor.headings, key=lambda heading: heading.level).words
    cut = f"<{extractor.hidden[0]}>" if extractor.hidden else "" if comment < 0 else "comment"
    return Page(text, title, outline(extractor.headings, len(text)), cut)


def read(source: Source) -> Records:
    """One document per page."""
    charset = CHARSET.search(source.head_bytes[:2048])
    if charset and source.encoding == "utf-8":
        _use_declared(source, charset[1].decode())
    page = extract(source.text())
    if page.cut:
        yield Notice(CUT.format(page.cut), f"close the {page.cut} if what follows it should be read")
    yield Document(source.name, page.text, page.title, annotations=page.sections)


def _use_declared(source: Source, charset: str) -> None:
    """Reads the page in the encoding that it declares; the common Western ones are what `source` does anyway."""
    try:
        name = codecs.lookup(charset).name
        b"".decode(name)  # some codecs are not for text
    except (LookupError, UnicodeError):
        source.notices.append(Notice(f"it declares an unknown charset {charset!r}", "save it as UTF-8", source.label))
        return
    if name not in ("utf-8", "iso8859-1", "cp1252", "ascii") and not name.startswith(("utf-16", "utf-32")):
        source.encoding = name


def recognises(name: str, head: str) -> bool:
    start = head[:1000].lstrip().lower()
    if start.startswith("<?xml"):
        start = start[start.find("<html") :]
    return name.endswith((".html", ".htm", ".xhtml")) or start.startswith(("<!doctype html", "<html"))


FORMAT = Format("html", "HTML pages: the visible text, headings as sections", recognises, read)

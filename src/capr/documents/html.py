"""The reader of HTML: the visible text, line by line, with its headings as sections."""

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
LINE = set(
    "div tr li dt dd section article header footer main nav option "
    "figcaption caption address thead tbody form hr".split()
)
PARAGRAPH = set("p ul ol dl table pre blockquote figure h1 h2 h3 h4 h5 h6".split())
BLOCK = LINE | PARAGRAPH
HEADING = re.compile("h[1-6]")
WHITE_SPACE = re.compile(r"[ \t\r\n\f]+")
CHARSET = re.compile(rb"<meta[^>]+charset=[\"' ]*([A-Za-z0-9_:.-]+)", re.IGNORECASE)

UNCLOSED = "a {} that is not closed hides the rest of the page"


class VisibleTextParser(HTMLParser):
    """A parser that collects the visible text.

    It collapses white space as browsers do, and keeps non-breaking spaces.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.length = 0
        self.headings: list[Heading] = []
        self.title = ""
        self.hidden: list[str] = []  # the open elements that hide their content
        self._in_title = False
        self._preformatted = 0
        self._heading: tuple[int, int, int] | None = None  # an open heading: its offset, first part and level
        self._cells = 0  # in the current row of a table
        self._breaks = 2  # line breaks at the end of the text so far
        self._blank = False  # whether a space precedes the next word
        self._item = False  # whether the text so far ends with the mark of a list item
        self._missing_closings: set[str] = set()  # the ends of declarations that the rest of the page does not have

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.hidden and self.hidden[-1] == "svg" and tag in BLOCK:
            self.hidden.pop()  # browsers also close an open svg here
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
            self._heading = None  # also discards an empty heading
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
            words = WHITE_SPACE.sub(" ", data)
            self._blank = self._blank or words[:1] == " "
            if words.strip(" "):
                if self._blank and not self._breaks and not self.parts[-1].endswith((" ", "\t", "\n")):
                    self._write(" ")
                self._write(words.strip(" "))
                self._blank = words[-1] == " "

    def parse_marked_section(self, i: int, report: int = 1) -> int:
        """Treat `<![CDATA[ text ]]>` as text and skip other declarations, on which the base class fails."""
        cdata = self.rawdata.startswith("<![CDATA[", i)
        closing = "]]>" if cdata else ">"
        end = -1 if closing in self._missing_closings else self.rawdata.find(closing, i)
        if end < 0:
            self._missing_closings.add(closing)
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
            self.headings.append(Heading(begin, begin + len(words.strip()), WHITE_SPACE.sub(" ", words.strip()), level))
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
    """The visible content of an HTML page.

    Attributes:
        text: the visible text.
        title: the title element, or the first heading of the highest level.
        sections: the sections by heading.
        unclosed: an element or comment that is not closed and hides the rest of the page; usually empty.
    """

    text: str
    title: str
    sections: tuple[Annotation, ...]
    unclosed: str


def extract(markup: str) -> Page:
    """Extract the text, the title and the sections of an HTML page."""
    parser = VisibleTextParser()
    comment = markup.find("<!--", markup.rfind("-->") + 1)
    visible = markup if comment < 0 else markup[:comment]
    end_of_tags = visible.rfind(">") + 1  # no tag follows, and the parser would search the rest for one repeatedly
    parser.feed(visible[:end_of_tags])
    parser.close()
    parser.handle_data(unescape(visible[end_of_tags:]))
    parser._close_heading()
    text = "".join(parser.parts).rstrip("\n")
    text += "\n" if text else ""
    title = WHITE_SPACE.sub(" ", parser.title).strip()
    if not title and parser.headings:
        title = min(parser.headings, key=lambda heading: heading.level).words
    unclosed = f"<{parser.hidden[0]}>" if parser.hidden else "" if comment < 0 else "comment"
    return Page(text, title, outline(parser.headings, len(text)), unclosed)


def read(source: Source) -> Records:
    """Yield one document per page."""
    charset = CHARSET.search(source.head_bytes[:2048])
    if charset and source.encoding == "utf-8":
        _use_charset(source, charset[1].decode())
    page = extract(source.text())
    if page.unclosed:
        yield Notice(UNCLOSED.format(page.unclosed), f"close the {page.unclosed}, so that capr reads the text after it")
    yield Document(source.name, page.text, page.title, annotations=page.sections)


def _use_charset(source: Source, charset: str) -> None:
    """Set the encoding of the source to the charset that the page declares.

    UTF-8 and the common Western encodings need no change, because `Source` reads them anyway.
    """
    try:
        name = codecs.lookup(charset).name
        b"".decode(name)  # fails for codecs that are not for text
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

"""`capr segment`: cut documents, and see where."""

from __future__ import annotations

import json
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from capr.cli import inputs
from capr.documents import CaprError, Document, Span
from capr.segment import HeadingCounts, passages, sections, sentences, uniform
from capr.segment.passages import MAX_WORDS

Piece = tuple[Span, str | None]  # where it is, and its heading


class By(StrEnum):
    """The ways of cutting."""

    section = "section"
    passage = "passage"
    sentence = "sentence"
    uniform = "uniform"


def command(
    files: inputs.Files,
    by: Annotated[By, typer.Option("--by", help="How to cut.")] = By.passage,
    words: Annotated[int | None, typer.Option("--words", min=1, help="Words in a passage, at most; 250.")] = None,
    length: Annotated[
        int | None, typer.Option("--length", min=1, help="Characters in a uniform piece, on average; 1000.")
    ] = None,
    headings: Annotated[
        str | None,
        typer.Option("--headings", metavar="COUNTS", help="Open sections at headings counted by `capr headings`."),
    ] = None,
    threshold: Annotated[
        int | None, typer.Option("--threshold", min=1, help="How often such a heading was counted; 1.")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="Put the text of each piece into the JSON.")] = False,
    format: inputs.Format = None,
    column: inputs.Column = None,
    strict: inputs.Strict = False,
    replace: inputs.Replace = False,
    as_json: inputs.Json = False,
) -> None:
    """Cut documents into sections, passages, sentences or uniform pieces.

    Every piece is a range [begin, end) of characters of the document's text. JSON Lines have document, begin, end and
    heading.

    Example: capr segment notes/ --by section --json
    """
    for option, given, needed, fits in (
        ("--words", words, "--by passage", by is By.passage),
        ("--length", length, "--by uniform", by is By.uniform),
        ("--headings", headings, "--by section, passage or sentence", by is not By.uniform),
        ("--threshold", threshold, "--headings", headings is not None),
        ("--text", text or None, "--json", as_json),
    ):
        if given is not None and not fits:
            raise CaprError(f"{option} has no effect without {needed}. Fix: add it, or leave {option} out.")
    counts = HeadingCounts.load(headings) if headings else None
    source = inputs.Documents(files, format, column, strict, replace)
    cut = _cutter(by, words or MAX_WORDS, length or 1000, counts, threshold or 1)
    console = inputs.terminal()
    total = 0
    for document in source.documents():
        pieces = list(cut(document))
        total += len(pieces)
        if as_json:
            for span, heading in pieces:
                record: dict[str, Any] = {"document": document.id, "begin": span.begin, "end": span.end}
                record["heading"] = heading
                if text:
                    record["text"] = document[span]
                sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
        else:
            console.print(document.id, style="bold")
            console.print(_table(document, pieces))
    if not as_json:
        documents = inputs.counted(source.reading.documents, "document")
        console.print(f"{inputs.counted(total, 'piece')} (by {by}) in {documents}")
    source.finish()


def _cutter(
    by: By, words: int, length: int, counts: HeadingCounts | None, threshold: int
) -> Callable[[Document], Iterator[Piece]]:
    def cut_sections(document: Document) -> Iterator[Piece]:
        return ((section.span, section.heading) for section in sections(document, counts, threshold))

    def cut_passages(document: Document) -> Iterator[Piece]:
        return ((passage.span, passage.heading) for passage in passages(document, words, counts, threshold))

    def cut_sentences(document: Document) -> Iterator[Piece]:
        found = sections(document, counts, threshold)
        begins = [section.span.begin for section in found]
        for span in sentences(document.text):
            at = bisect_right(begins, span.begin) - 1
            yield span, found[at].heading if at >= 0 else None

    def cut_uniform(document: Document) -> Iterator[Piece]:
        return ((span, None) for span in uniform(document.text, length))

    cutters = {
        By.section: cut_sections,
        By.passage: cut_passages,
        By.sentence: cut_sentences,
        By.uniform: cut_uniform,
    }
    return cutters[by]


def _table(document: Document, pieces: list[Piece]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    table.add_column("begin", justify="right", no_wrap=True, width=6)
    table.add_column("end", justify="right", no_wrap=True, width=6)
    table.add_column("heading", no_wrap=True, ratio=2)
    table.add_column("text", no_wrap=True, ratio=3)
    for span, heading in pieces:
        *above, own = (heading or "").split(" | ")
        shown = "  " * len(above) + own  # a part of a section is indented under it
        table.add_row(str(span.begin), str(span.end), shown, inputs.printable(" ".join(document[span].split())[:200]))
    return table

"""`capr segment`: cut documents into segments."""

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
from capr.cli.options import expand_options
from capr.documents import CaprError, Document, Span
from capr.segment import HeadingCounts, passages, sections, sentences, uniform
from capr.segment.cutting import MAX_WORDS
from capr.segment.paragraphs import LENGTH

Segment = tuple[Span, str | None]  # the span and the heading


class By(StrEnum):
    """The ways to cut documents."""

    section = "section"
    passage = "passage"
    sentence = "sentence"
    uniform = "uniform"


@expand_options
def command(
    sources: inputs.DocumentOptions,
    by: Annotated[By, typer.Option("--by", help="How to cut.")] = By.passage,
    words: Annotated[
        int | None, typer.Option("--words", min=1, help=f"Maximum number of words in a passage. Default: {MAX_WORDS}.")
    ] = None,
    length: Annotated[
        int | None,
        typer.Option("--length", min=1, help=f"Mean number of characters in a uniform segment. Default: {LENGTH}."),
    ] = None,
    headings: Annotated[
        str | None,
        typer.Option("--headings", metavar="COUNTS", help="Begin sections at headings counted by `capr headings`."),
    ] = None,
    threshold: Annotated[
        int | None, typer.Option("--threshold", min=1, help="Minimum count of such a heading. Default: 1.")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="Include the text of each segment in the JSON.")] = False,
    as_json: inputs.Json = False,
) -> None:
    """Cut documents into sections, passages, sentences or uniform segments.

    Every segment is a span [begin, end) of characters of the document's text. JSON Lines have document, begin, end and
    heading.

    Example: capr segment notes/ --by section --json
    """
    for option, value, other_option, is_valid in (
        ("--words", words, "--by passage", by is By.passage),
        ("--length", length, "--by uniform", by is By.uniform),
        ("--headings", headings, "--by section, passage or sentence", by is not By.uniform),
        ("--threshold", threshold, "--headings", headings is not None),
        ("--text", text or None, "--json", as_json),
    ):
        if value is not None and not is_valid:
            raise CaprError(f"{option} has no effect without {other_option}. Fix: add it, or leave {option} out.")
    counts = HeadingCounts.load(headings) if headings else None
    source = sources.read()
    cut = _make_cutter(by, words or MAX_WORDS, length or LENGTH, counts, threshold or 1)
    console = inputs.terminal()
    total = 0
    for document in source.documents():
        segments = list(cut(document))
        total += len(segments)
        if as_json:
            for span, heading in segments:
                record: dict[str, Any] = {"document": document.id, "begin": span.begin, "end": span.end}
                record["heading"] = heading
                if text:
                    record["text"] = document[span]
                sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
        else:
            console.print(document.id, style="bold")
            console.print(_make_table(document, segments))
    if not as_json:
        documents = inputs.quantity(source.reading.documents, "document")
        segment_name = "uniform segment" if by is By.uniform else str(by)
        console.print(f"{inputs.quantity(total, segment_name)} in {documents}")
    source.finish()


def _make_cutter(
    by: By, words: int, length: int, counts: HeadingCounts | None, threshold: int
) -> Callable[[Document], Iterator[Segment]]:
    def cut_sections(document: Document) -> Iterator[Segment]:
        return ((section.span, section.heading) for section in sections(document, counts, threshold))

    def cut_passages(document: Document) -> Iterator[Segment]:
        return ((passage.span, passage.heading) for passage in passages(document, words, counts, threshold))

    def cut_sentences(document: Document) -> Iterator[Segment]:
        document_sections = sections(document, counts, threshold)
        begins = [section.span.begin for section in document_sections]
        for span in sentences(document.text):
            index = bisect_right(begins, span.begin) - 1
            yield span, document_sections[index].heading if index >= 0 else None

    def cut_uniform(document: Document) -> Iterator[Segment]:
        return ((span, None) for span in uniform(document.text, length))

    cutters = {
        By.section: cut_sections,
        By.passage: cut_passages,
        By.sentence: cut_sentences,
        By.uniform: cut_uniform,
    }
    return cutters[by]


def _make_table(document: Document, segments: list[Segment]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    table.add_column("begin", justify="right", no_wrap=True, width=6)
    table.add_column("end", justify="right", no_wrap=True, width=6)
    table.add_column("heading", no_wrap=True, ratio=2)
    table.add_column("text", no_wrap=True, ratio=3)
    for span, heading in segments:
        *ancestors, last_heading = (heading or "").split(" | ")
        indented_heading = "  " * len(ancestors) + last_heading  # subsections are indented
        table.add_row(
            str(span.begin), str(span.end), indented_heading, inputs.printable(" ".join(document[span].split())[:200])
        )
    return table

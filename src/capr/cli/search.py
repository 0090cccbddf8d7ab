"""`capr search`: the passages that answer a query."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from capr.annotate import Query, Vocabulary
from capr.cli import inputs
from capr.cli.annotate import SIGNS
from capr.documents import CaprError, Span
from capr.index.digest import as_text
from capr.search import Hit, Library, Results
from capr.search.passages import Group, Mode


class Flag(StrEnum):
    """What a mention may be."""

    negated = "negated"
    possible = "possible"
    hypothetical = "hypothetical"
    historical = "historical"
    family = "family"


NAMED = 4  # other names of an entity that are shown
FIRST = 300  # characters of a passage without evidence


def command(
    library: inputs.LibraryFolder,
    query: Annotated[
        list[str] | None,
        typer.Argument(metavar="[QUERY]", help='A question, or words with operators: "a phrase", -word, field:value.'),
    ] = None,
    entity: Annotated[str, typer.Option("--entity", help="Instead of a query: what to look for.")] = "",
    aspect: Annotated[str, typer.Option("--aspect", help="What about it.")] = "",
    k: Annotated[int, typer.Option("-k", "--k", help="Passages to find, at most.")] = 10,
    filter: inputs.Filter = None,
    without: Annotated[
        list[Flag] | None, typer.Option("--without", help="Only where the entity is not so; may be repeated.")
    ] = None,
    mode: Annotated[Mode, typer.Option("--mode", help="Compare words, meanings, both, or sentences.")] = Mode.hybrid,
    fusion: inputs.Fused = inputs.Fusion.scores,
    group: Annotated[Group | None, typer.Option("--group", help="One hit for each.")] = None,
    neighbours: Annotated[
        int, typer.Option("--neighbours", min=0, help="Passages before and after each hit to show.")
    ] = 0,
    encoder: inputs.Encoder = None,
    discourse: inputs.Discourse = None,
    ranker: Annotated[
        str | None,
        typer.Option("--ranker", metavar="FOLDER", help="Re-ranks the best passages; none for none."),
    ] = None,
    vocabulary: inputs.VocabularyTables = None,
    whole: Annotated[bool, typer.Option("--whole", help="Show whole passages, not only what matters.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show what each stage of the search said.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with hits.")] = False,
) -> None:
    """Find passages that answer a question, or that are about an aspect of an entity.

    Other names of an entity are found, too. Filters are name=value, name!=value, name=@FILE (a value on each line),
    date=2023-01..2023-06; values may end in *. Hits show where they stand, and the sentences that matter.

    Example: capr search library --entity asthma --aspect "family history" --without negated
    """
    words = " ".join(query or ()).strip()
    if words and (entity or aspect):
        raise CaprError("there are a query and an --entity or --aspect. Fix: write one or the other.")
    if not (words or entity or aspect):
        raise CaprError("there is no query. Fix: write one, or --entity and --aspect.")
    asked = Query(words) if words else Query(entity=entity, aspect=aspect)
    conditions = [*(filter or ()), *(f"without={flag}" for flag in without or ())]
    tables = Vocabulary.load(*vocabulary or ())
    with Library(library, encoder=encoder, ranker=ranker, discourse=discourse, vocabulary=tables) as kept:
        results = kept.search(
            asked, k, filters=conditions, mode=mode, fusion=fusion, group=group, neighbours=neighbours
        )
    if as_json:
        sys.stdout.write(as_text(results.as_json()) + "\n")
    else:
        _show(results, inputs.terminal(), whole, explain)
        notes = inputs.terminal(stderr=True)
        for notice in results.notices:
            notes.print(f"Note: {inputs.printable(notice)}")
    if not results.hits:
        raise typer.Exit(1)


def _show(results: Results, console: Console, whole: bool, explain: bool) -> None:
    for words, others in results.expanded.items():
        if others:
            named = f"{words}: also {', '.join(others[:NAMED])}{', ...' if len(others) > NAMED else ''}"
            console.print(inputs.printable(named), style="dim", no_wrap=True, overflow="ellipsis", crop=True)
    for number, hit in enumerate(results, 1):
        console.print(f"{number}. {inputs.printable(_place(hit))}", style="bold")
        inputs.indented(console, inputs.printable(inputs.origin(hit.metadata, hit.title)), "dim")
        for near in hit.neighbours:
            if near.span < hit.passage.span:
                inputs.indented(console, f"before {inputs.range_of(near.span)}: {inputs.printable(near.text)}", "dim")
        inputs.indented(console, _shown(hit, whole, console.color_system is not None))
        for near in hit.neighbours:
            if near.span > hit.passage.span:
                inputs.indented(console, f"after {inputs.range_of(near.span)}: {inputs.printable(near.text)}", "dim")
        if explain:
            said = ", ".join(f"{name} {stage.rank}. ({stage.score:.3f})" for name, stage in hit.stages.items())
            inputs.indented(console, f"score {hit.score:.3f}: {said}", "dim")
        if hit.others:
            places = ", ".join(f"{other.document} {inputs.range_of(other.passage.span)}" for other in hit.others)
            inputs.indented(console, inputs.printable(f"also {places}"), "dim")
    console.print(
        f"{inputs.counted(len(results), 'passage' if not _has_groups(results) else 'group')} ({results.mode})"
    )


def _has_groups(results: Results) -> bool:
    return any(hit.group for hit in results)


def _place(hit: Hit) -> str:
    group = f"{hit.group}: " if hit.group and hit.group != hit.document else ""
    return f"{group}{hit.document} {inputs.range_of(hit.passage.span)} {' | '.join(hit.headings)}".rstrip()


def _shown(hit: Hit, whole: bool, in_colour: bool) -> Text:
    """The passage, or its sentences that matter, with highlights in colour or brackets and the context of mentions."""
    text = Text()
    spans = [hit.passage.span] if whole else list(_pieces(hit))
    for number, span in enumerate(spans):
        if span.begin > (spans[number - 1].end + 2 if number else hit.passage.span.begin):
            text.append("... ")
        position = span.begin
        for mark in hit.highlights:
            if mark.begin < position or mark.end > span.end:
                continue
            text.append(_flat(hit, Span(position, mark.begin), whole))
            words = _flat(hit, mark, whole)
            text.append(words if in_colour else f"[{words}]", style="bold yellow")
            for mention in hit.mentions:
                if mark.covers(mention.span):
                    text.append("".join(f" [{SIGNS[flag]}]" for flag in mention.context), style="dim")
            position = mark.end
        text.append(_flat(hit, Span(position, span.end), whole) + " ")
    if spans and spans[-1].end < hit.passage.span.end:
        text.append("...")
    text.rstrip()
    return text


def _pieces(hit: Hit) -> Iterator[Span]:
    """The sentences that matter, in the order of the text; the first characters, if none does."""
    spans = sorted(sentence.span for sentence in hit.sentences)
    yield from spans or [Span(hit.passage.span.begin, min(hit.passage.span.end, hit.passage.span.begin + FIRST))]


def _flat(hit: Hit, span: Span, whole: bool) -> str:
    """A piece of text; line breaks are shown only in whole passages."""
    piece = inputs.printable(hit[span]).replace("\r\n", "\n").replace("\r", "\n")
    return piece if whole else piece.replace("\n", " ")

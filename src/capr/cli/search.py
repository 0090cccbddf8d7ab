"""`capr search`: find the passages that answer a query."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import partial
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from capr.annotate import Query, Vocabulary
from capr.cli import inputs
from capr.cli.annotate import SIGNS
from capr.cli.results import place, show
from capr.documents import CaprError, Span
from capr.search import Hit, Library, Results
from capr.search.passages import Group, Mode


class Flag(StrEnum):
    """The contexts of a mention."""

    negated = "negated"
    possible = "possible"
    hypothetical = "hypothetical"
    historical = "historical"
    family = "family"


MAX_NAMES = 4  # other names of an entity to show
MAX_LENGTH = 300  # characters to show of a passage without evidence


def command(
    library: inputs.LibraryLocation,
    query: Annotated[
        list[str] | None,
        typer.Argument(metavar="[QUERY]", help='A question, or words with operators: "a phrase", -word, field:value.'),
    ] = None,
    entity: Annotated[str, typer.Option("--entity", help="The entity, instead of a query.")] = "",
    aspect: Annotated[str, typer.Option("--aspect", help="The aspect of the entity.")] = "",
    k: Annotated[int, typer.Option("-k", "--k", help="Maximum number of hits.")] = 10,
    filter: inputs.Filter = None,
    without: Annotated[
        list[Flag] | None,
        typer.Option("--without", help="Only hits that mention the entity without this context. May be repeated."),
    ] = None,
    mode: Annotated[
        Mode, typer.Option("--mode", help="Rank by words, passage vectors, both, or sentence vectors.")
    ] = Mode.hybrid,
    fusion: inputs.Fused = inputs.Fusion.scores,
    group: Annotated[Group | None, typer.Option("--group", help="Return one hit for each document or patient.")] = None,
    neighbours: Annotated[
        int, typer.Option("--neighbours", min=0, help="Number of passages to show before and after each hit.")
    ] = 0,
    encoder: inputs.Encoder = None,
    discourse: inputs.Discourse = None,
    ranker: inputs.Ranker = None,
    vocabulary: inputs.VocabularyTables = None,
    whole: Annotated[bool, typer.Option("--whole", help="Show whole passages, not only their evidence.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show the rank and score of each stage.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with hits.")] = False,
) -> None:
    """Find passages that answer a question, or that are about an aspect of an entity.

    The search also finds other names of an entity. Filters are name=value, name!=value, name=@FILE (a value on each
    line) and date=2023-01..2023-06; a value may end in *. Hits show their span and the sentences that are evidence.

    Example: capr search library --entity asthma --aspect "family history" --without negated
    """
    text = " ".join(query or ()).strip()
    if text and (entity or aspect):
        raise CaprError("a query cannot be combined with --entity or --aspect. Fix: use one or the other.")
    if not (text or entity or aspect):
        raise CaprError("there is no query. Fix: write one, or --entity and --aspect.")
    structured_query = Query(text) if text else Query(entity=entity, aspect=aspect)
    conditions = [*(filter or ()), *(f"without={flag}" for flag in without or ())]
    tables = Vocabulary.load(*vocabulary or ())
    with Library(library, encoder=encoder, ranker=ranker, discourse=discourse, vocabulary=tables) as opened:
        results = opened.search(
            structured_query, k, filters=conditions, mode=mode, fusion=fusion, group=group, neighbours=neighbours
        )
    show(results, as_json, partial(_show, whole=whole, explain=explain))
    if not results.hits:
        raise typer.Exit(1)


def _show(results: Results, console: Console, whole: bool, explain: bool) -> None:
    for entity, other_names in results.expanded.items():
        if other_names:
            names_line = (
                f"{entity}: also {', '.join(other_names[:MAX_NAMES])}{', ...' if len(other_names) > MAX_NAMES else ''}"
            )
            console.print(inputs.printable(names_line), style="dim", no_wrap=True, overflow="ellipsis", crop=True)
    for number, hit in enumerate(results, 1):
        console.print(f"{number}. {inputs.printable(_place(hit))}", style="bold")
        inputs.print_indented(console, inputs.printable(inputs.origin(hit.metadata, hit.title)), "dim")
        for neighbour in hit.neighbours:
            if neighbour.span < hit.passage.span:
                inputs.print_indented(
                    console, f"before {inputs.format_span(neighbour.span)}: {inputs.printable(neighbour.text)}", "dim"
                )
        inputs.print_indented(console, _evidence(hit, whole, console.color_system is not None))
        for neighbour in hit.neighbours:
            if neighbour.span > hit.passage.span:
                inputs.print_indented(
                    console, f"after {inputs.format_span(neighbour.span)}: {inputs.printable(neighbour.text)}", "dim"
                )
        if explain:
            stages = "; ".join(
                f"{name} rank {stage.rank}, score {stage.score:.3f}" for name, stage in hit.stages.items()
            )
            inputs.print_indented(console, f"score {hit.score:.3f}: {stages}", "dim")
        if hit.others:
            places = ", ".join(f"{other.document} {inputs.format_span(other.passage.span)}" for other in hit.others)
            inputs.print_indented(console, inputs.printable(f"also {places}"), "dim")
    console.print(
        f"{inputs.quantity(len(results), 'passage' if not _has_groups(results) else 'group')} ({results.mode})"
    )


def _has_groups(results: Results) -> bool:
    return any(hit.group for hit in results)


def _place(hit: Hit) -> str:
    group = f"{hit.group}: " if hit.group and hit.group != hit.document else ""
    return f"{group}{place(hit.document, hit.passage.span, hit.headings)}"


def _evidence(hit: Hit, whole: bool, in_colour: bool) -> Text:
    """Return the passage or its evidence, with highlights in colour or brackets and the context of mentions."""
    text = Text()
    spans = [hit.passage.span] if whole else list(_evidence_spans(hit))
    for number, span in enumerate(spans):
        if span.begin > (spans[number - 1].end + 2 if number else hit.passage.span.begin):
            text.append("... ")
        position = span.begin
        for mark in hit.highlights:
            if mark.begin < position or mark.end > span.end:
                continue
            text.append(_printable(hit, Span(position, mark.begin), whole))
            highlighted = _printable(hit, mark, whole)
            text.append(highlighted if in_colour else f"[{highlighted}]", style="bold yellow")
            for mention in hit.mentions:
                if mark.covers(mention.span):
                    text.append("".join(f" [{SIGNS[flag]}]" for flag in mention.context), style="dim")
            position = mark.end
        text.append(_printable(hit, Span(position, span.end), whole) + " ")
    if spans and spans[-1].end < hit.passage.span.end:
        text.append("...")
    text.rstrip()
    return text


def _evidence_spans(hit: Hit) -> Iterator[Span]:
    """Yield the spans of the evidence in the order of the text, or the beginning of a passage without evidence."""
    spans = sorted(sentence.span for sentence in hit.sentences)
    yield from spans or [Span(hit.passage.span.begin, min(hit.passage.span.end, hit.passage.span.begin + MAX_LENGTH))]


def _printable(hit: Hit, span: Span, whole: bool) -> str:
    """Return the printable text of a span; only whole passages keep their line breaks."""
    text = inputs.printable(hit[span]).replace("\r\n", "\n").replace("\r", "\n")
    return text if whole else text.replace("\n", " ")

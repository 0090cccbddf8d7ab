"""`capr scores`: show the score of each sentence of a document for a query."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Annotated

import typer

from capr.annotate import Query
from capr.cli import inputs, score_chart
from capr.cli.results import show_json
from capr.documents import CaprError, Span
from capr.search import Curve, Library

PEAKS = 3  # sentences to show
ANSWER_LINES = 4  # lines of the answer to show
MAX_WIDTH = 100  # columns of a curve
INDENT = 5  # columns before a sentence


def command(
    library: inputs.LibraryLocation,
    document: Annotated[str, typer.Argument(metavar="DOCUMENT", help="The id of a document.")],
    entity: Annotated[str, typer.Option("--entity", help="The entity of the query.")] = "",
    aspect: Annotated[str, typer.Option("--aspect", help="The aspect of the query.")] = "",
    discourse: inputs.Discourse = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Also draw the curves, as .png or .svg.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with sentences.")] = False,
) -> None:
    """Show the score of every sentence of a document for an entity, an aspect, and both.

    The library needs a discourse model (capr encode LIBRARY --discourse FOLDER). The curves run from the first sentence
    to the last. Below them are the best run of sentences and the best single sentences, with their spans.

    Example: capr scores library gout.md --entity gout --aspect symptoms --plot gout.png
    """
    if not (entity.strip() or aspect.strip()):
        raise CaprError("there is no query. Fix: write --entity, --aspect, or both.")
    if plot is not None:
        inputs.check_installed("a plot", "matplotlib")
    with Library(library, discourse=discourse) as opened:
        curve = opened.scores(Query(entity=entity, aspect=aspect), document)
    if plot is not None:
        from capr.evaluate.curves import draw

        draw(plot, curve)
    if as_json:
        show_json(curve.as_json())
        return
    _show(curve)
    if plot is not None:
        inputs.terminal().print(f"Saved the plot to {plot}")


def _show(curve: Curve) -> None:
    console = inputs.terminal()
    words = [f"{name} {words!r}" for name, words in (("entity", curve.entity), ("aspect", curve.aspect)) if words]
    title = f"{curve.document.id}: {inputs.quantity(len(curve), 'sentence')}, {', '.join(words)}"
    console.print(inputs.printable(title), style="bold", soft_wrap=True)
    if not len(curve):
        return
    for line in score_chart.lines(curve, min(console.width, MAX_WIDTH)):
        console.print(inputs.printable(line), no_wrap=True, overflow="ellipsis", crop=True)

    def quote(span: Span, max_lines: int | None = None) -> None:
        for line in textwrap.wrap(
            " ".join(curve.document[span].split()), console.width - INDENT, max_lines=max_lines, placeholder=" ..."
        ):
            console.print(inputs.printable(f"{'':{INDENT}}{line}"), soft_wrap=True)

    *halves, rank_score = score_chart.score_names(curve)  # the last score ranks the sentences
    if max(getattr(sentence, rank_score) for sentence in curve) < score_chart.MIN_SCORE:
        console.print("no sentence in the document matches the query")
        return
    console.print(f"answer {inputs.format_span(curve.answer)}")
    quote(curve.answer, ANSWER_LINES)
    for sentence in curve.peaks(PEAKS):
        parts = ", ".join(f"{name} {getattr(sentence, name):.2f}" for name in halves)
        console.print(
            f"{getattr(sentence, rank_score):.2f} {f'({parts}) ' if parts else ''}{inputs.format_span(sentence.span)}"
        )
        quote(sentence.span)

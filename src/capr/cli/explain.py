"""`capr explain`: what each sentence of a document has to do with a query."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Annotated

import typer

from capr.annotate import Query
from capr.cli import inputs, strip
from capr.documents import CaprError, Span
from capr.index.digest import as_text
from capr.search import Curve, Library

PEAKS = 3  # sentences that are shown
ANSWER = 4  # lines of the answer that are
WIDEST = 100  # columns of a curve
INDENT = 5  # columns before a sentence


def command(
    library: inputs.LibraryFolder,
    document: Annotated[str, typer.Argument(metavar="DOCUMENT", help="Its id.")],
    entity: Annotated[str, typer.Option("--entity", help="What is looked for.")] = "",
    aspect: Annotated[str, typer.Option("--aspect", help="What about it.")] = "",
    discourse: inputs.Discourse = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the curves, too, as .png or .svg.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with sentences.")] = False,
) -> None:
    """Show how much every sentence of a document has to do with an entity, an aspect, and both.

    The library needs a discourse model (capr encode LIBRARY --discourse FOLDER). Curves run from the first sentence to
    the last; below stand the run of sentences that answers best and the best single ones, with their places.

    Example: capr explain library gout.md --entity gout --aspect symptoms --plot gout.png
    """
    if not (entity.strip() or aspect.strip()):
        raise CaprError("there is nothing to look for. Fix: write --entity, --aspect, or both.")
    with Library(library, discourse=discourse) as kept:
        curve = kept.scores(Query(entity=entity, aspect=aspect), document)
    if plot is not None:
        _draw(plot, curve)
    if as_json:
        sys.stdout.write(as_text(curve.as_json()) + "\n")
        return
    _show(curve)
    if plot is not None:
        inputs.terminal().print(f"drawn in {plot}")


def _draw(path: Path, curve: Curve) -> None:
    try:
        from capr.evaluate.curves import draw

        draw(path, curve)
    except ImportError as error:
        raise CaprError(f"a plot needs {error.name}. Fix: pip install 'capr[evaluate]'.") from error


def _show(curve: Curve) -> None:
    console = inputs.terminal()
    words = [f"{name} {words!r}" for name, words in (("entity", curve.entity), ("aspect", curve.aspect)) if words]
    title = f"{curve.document.id}: {inputs.counted(len(curve), 'sentence')}, {', '.join(words)}"
    console.print(inputs.printable(title), style="bold", soft_wrap=True)
    if not len(curve):
        return
    for line in strip.lines(curve, min(console.width, WIDEST)):
        console.print(inputs.printable(line), no_wrap=True, overflow="ellipsis", crop=True)

    def quote(span: Span, most: int | None = None) -> None:
        for line in textwrap.wrap(
            " ".join(curve.document[span].split()), console.width - INDENT, max_lines=most, placeholder=" ..."
        ):
            console.print(inputs.printable(f"{'':{INDENT}}{line}"), soft_wrap=True)

    *halves, shown = strip.asked(curve)  # the last is what sentences are ranked by
    if max(getattr(one, shown) for one in curve) < strip.LEAST:
        console.print(f"nothing in the document speaks of {'both together' if halves else 'it'}")
        return
    console.print(f"answer {strip.place(curve.answer)}")
    quote(curve.answer, ANSWER)
    for one in curve.peaks(PEAKS):
        parts = ", ".join(f"{name} {getattr(one, name):.2f}" for name in halves)
        console.print(f"{getattr(one, shown):.2f} {f'({parts}) ' if parts else ''}{strip.place(one.span)}")
        quote(one.span)

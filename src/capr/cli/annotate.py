"""`capr annotate`: find the mentions in documents."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Annotated

import typer
from rich.text import Text

from capr.annotate.mentions import Mention, annotator
from capr.annotate.vocabulary import Vocabulary
from capr.cli import inputs
from capr.cli.options import expand_options
from capr.documents import Document

STYLES = {"disease": "bold red", "symptom": "bold yellow", "drug": "bold cyan"}
SIGNS = {"negated": "¬", "possible": "?", "hypothetical": "if", "historical": "past", "family": "family"}


@expand_options
def command(
    sources: inputs.DocumentOptions,
    vocabulary: inputs.VocabularyTables = None,
    tagger: Annotated[
        bool, typer.Option("--tagger/--no-tagger", help="Also find names that the vocabulary does not have.")
    ] = True,
    as_json: inputs.Json = False,
) -> None:
    """Find mentions of diseases, symptoms and drugs, with their concepts and their context.

    Each mention is a span [begin, end) of characters. The text is printed with its mentions in colour, or in brackets
    if the output has no colour; the context of a mention and its cues follow in brackets. Each JSON line has the fields
    document, begin, end, text, kind, concept, found_by, negated, possible, hypothetical, historical, family and cues.

    Example: capr annotate notes/ --json > mentions.jsonl
    """
    # On a terminal the printed text shows the progress, and a bar would interrupt it.
    speed = inputs.FAST if sys.stdout.isatty() else 20_000 if tagger else 500_000
    source = sources.read(speed)
    finder = annotator(tagger, Vocabulary.load(*vocabulary or ()))
    console = inputs.terminal()
    kinds: Counter[str] = Counter()
    for document in source.documents():
        mentions = finder.annotate(document)
        kinds.update(mention.kind for mention in mentions)
        if as_json:
            for mention in mentions:
                sys.stdout.write(json.dumps(mention.as_json(document), ensure_ascii=False) + "\n")
        else:
            console.print(document.id, style="bold")
            console.print(mark_mentions(document, mentions, console.color_system is not None))
    if not as_json:
        counts = ", ".join(inputs.quantity(count, kind) for kind, count in kinds.most_common())
        documents = inputs.quantity(source.reading.documents, "document")
        console.print(f"{counts or 'nothing found'} in {documents}", soft_wrap=True)
    source.finish()


def mark_mentions(document: Document, mentions: list[Mention], in_colour: bool) -> Text:
    """Return the text of a document with its mentions in colour or brackets, each followed by its context."""
    text = Text()
    position = 0
    for mention in mentions:
        text.append(inputs.printable(document.text[position : mention.span.begin]))
        style = STYLES.get(mention.kind, "bold green")
        words = inputs.printable(document[mention.span])
        text.append(words if in_colour else f"[{words}]", style=f"{style} strike" if mention.negated else style)
        for flag, cue in mention.context.items():
            text.append(f" [{SIGNS[flag]}: {inputs.printable(cue.words)}]", style="dim")
        position = mention.span.end
    text.append(inputs.printable(document.text[position:]))
    return text

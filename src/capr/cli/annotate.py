"""`capr annotate`: what do these documents speak of, and how?"""

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
from capr.documents import Document

STYLES = {"disease": "bold red", "symptom": "bold yellow", "drug": "bold cyan"}
SIGNS = {"negated": "¬", "possible": "?", "hypothetical": "if", "historical": "past", "family": "family"}


def command(
    files: inputs.Files,
    vocabulary: inputs.VocabularyTables = None,
    tagger: Annotated[
        bool, typer.Option("--tagger/--no-tagger", help="Look also for names that the vocabulary does not have.")
    ] = True,
    format: inputs.Format = None,
    column: inputs.Column = None,
    strict: inputs.Strict = False,
    replace: inputs.Replace = False,
    as_json: inputs.Json = False,
) -> None:
    """Find diseases, symptoms and drugs, what they mean, and whether they are negated, uncertain or somebody else's.

    Each mention is a range [begin, end) of characters. In the text mentions stand in colour, or in brackets where there
    is none; brackets after a mention have its context and the words that give it. JSON Lines have document, begin, end,
    text, kind, concept, found_by, negated, possible, hypothetical, historical, family and cue.

    Example: capr annotate notes/ --json > mentions.jsonl
    """
    # What is printed on the terminal shows how far it is, and a bar would stand between the lines.
    speed = inputs.FAST if sys.stdout.isatty() else 20_000 if tagger else 500_000
    source = inputs.Documents(files, format, column, strict, replace, speed)
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
            console.print(marked(document, mentions, console.color_system is not None))
    if not as_json:
        counts = ", ".join(inputs.counted(count, kind) for kind, count in kinds.most_common())
        documents = inputs.counted(source.reading.documents, "document")
        console.print(f"{counts or 'nothing found'} in {documents}", soft_wrap=True)
    source.finish()


def marked(document: Document, mentions: list[Mention], in_colour: bool) -> Text:
    """The text of a document with its mentions in colour, or in brackets, and their context after them."""
    shown = Text()
    position = 0
    for mention in mentions:
        shown.append(inputs.printable(document.text[position : mention.span.begin]))
        style = STYLES.get(mention.kind, "bold green")
        words = inputs.printable(document[mention.span])
        shown.append(words if in_colour else f"[{words}]", style=f"{style} strike" if mention.negated else style)
        for flag, cue in mention.context.items():
            shown.append(f" [{SIGNS[flag]}: {inputs.printable(cue.words)}]", style="dim")
        position = mention.span.end
    shown.append(inputs.printable(document.text[position:]))
    return shown

"""`capr index`: add documents to a library."""

from __future__ import annotations

from itertools import chain
from typing import Annotated

import typer

from capr.annotate import Vocabulary
from capr.cli import inputs
from capr.index.engines import is_library
from capr.search import Library
from capr.search.models import NONE

ENCODING, ANNOTATING, TAGGING = 30_000, 400_000, 15_000  # bytes per second on two cores


def command(
    library: inputs.LibraryLocation,
    files: inputs.Files,
    encoder: inputs.Encoder = None,
    discourse: inputs.Discourse = None,
    tagger: Annotated[
        bool, typer.Option("--tagger/--no-tagger", help="Also find entities that the vocabulary does not have.")
    ] = False,
    vocabulary: inputs.VocabularyTables = None,
    format: inputs.Format = None,
    column: inputs.Column = None,
    strict: inputs.Strict = False,
    max_words: Annotated[
        int | None,
        typer.Option(
            "--max-words", min=1, help="Maximum number of words in a passage. Default: as before in this library."
        ),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace documents whose contents changed.")] = False,
) -> None:
    """Add documents to a library; if the folder does not exist, capr creates the library.

    capr stores the exact text of every document, cuts it into passages, annotates it and encodes the passages.
    Committed documents survive a crash, and the same command continues after an interruption. capr skips documents
    that the library has already, but cuts them again if the length of passages changed. With a discourse model, capr
    encodes every sentence as well.

    Example: capr index library notes/
    """
    speed = TAGGING if tagger else ANNOTATING if encoder == NONE else ENCODING
    source = inputs.Documents(files, format, column, strict, replace, speed, "kept")
    tables = Vocabulary.load(*vocabulary or ())
    documents = source.documents()
    first = next(documents, None)
    if first is None and not is_library(library):  # leave no empty library behind
        source.console.print("Nothing was indexed.")
        source.finish()
        raise typer.Exit(1)
    all_documents = chain(() if first is None else (first,), documents)
    with Library(library, encoder=encoder, discourse=discourse, vocabulary=tables, max_words=max_words) as opened:
        outcome = opened.add(
            all_documents,
            replace=replace,
            tagger=tagger,
            on_problem=source.report,
        )
        stats = opened.stats()
    console = inputs.terminal()
    counts = [
        f"{count:,} {result}"
        for count, result in (
            (outcome.added, "added"),
            (outcome.replaced, "replaced"),
            (outcome.unchanged, "unchanged"),
            (len(outcome.problems), "refused"),
        )
        if count
    ]
    passages = inputs.quantity(outcome.passages, "passage")
    new_passages = f" ({passages})" if outcome.passages else ""
    console.print(f"documents: {', '.join(counts) or 'none'}{new_passages}; now {stats.documents:,} in {library}")
    missing = stats.passages - stats.vectors
    if stats.encoder is None:
        search_method = (
            "found by their words alone" if stats.discourse is None else "found by words and cdv search alone"
        )
        source.console.print(
            f"No encoder: passages are {search_method}. Fix: {opened.models.command(stats.discourse is not None)}."
        )
    elif missing:
        fact = f"There is no vector for {inputs.quantity(missing, 'passage')} yet"
        source.console.print(f"{fact}. Fix: capr encode {library}.")
    if stats.discourse is not None and stats.passages_with_sentences < stats.passages:
        missing = stats.passages - stats.passages_with_sentences
        sentences = f"The sentences of {inputs.quantity(missing, 'passage')}"
        source.console.print(f"{sentences} have no vectors yet. Fix: {opened.models.discourse_command()}.")
    source.finish()

"""`capr index`: keep documents in a library."""

from __future__ import annotations

from typing import Annotated

import typer

from capr.annotate import Vocabulary
from capr.cli import inputs
from capr.search import Library
from capr.search.models import NONE

ENCODING, ANNOTATING, TAGGING = 30_000, 400_000, 15_000  # bytes a second on two cores


def command(
    library: inputs.LibraryFolder,
    files: inputs.Files,
    encoder: inputs.Encoder = None,
    discourse: inputs.Discourse = None,
    tagger: Annotated[
        bool, typer.Option("--tagger/--no-tagger", help="Look also for entities that the vocabulary does not have.")
    ] = False,
    vocabulary: inputs.VocabularyTables = None,
    format: inputs.Format = None,
    column: inputs.Column = None,
    strict: inputs.Strict = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Exchange documents that are there with other contents.")
    ] = False,
) -> None:
    """Add documents to a library, and make it if it is not there.

    Every document is kept as it is, cut into passages, annotated, and turned into vectors by the encoder. What is
    kept stays kept, whatever happens; the same command goes on where it was interrupted. Documents that are there
    already are recognised and left alone. A discourse model gives every sentence a vector as well.

    Example: capr index library notes/
    """
    speed = TAGGING if tagger else ANNOTATING if encoder == NONE else ENCODING
    source = inputs.Documents(files, format, column, strict, replace, speed, "kept")
    tables = Vocabulary.load(*vocabulary or ())
    with Library(library, encoder=encoder, discourse=discourse, vocabulary=tables) as kept:
        outcome = kept.add(source.documents(), replace=replace, tagger=tagger, on_problem=source.tell)
        stats = kept.stats()
    console = inputs.terminal()
    parts = [
        f"{count:,} {what}"
        for count, what in (
            (outcome.added, "added"),
            (outcome.replaced, "replaced"),
            (outcome.unchanged, "unchanged"),
            (len(outcome.problems), "refused"),
        )
        if count
    ]
    passages = inputs.counted(outcome.passages, "passage")
    made = f" ({passages})" if outcome.passages else ""
    console.print(f"documents: {', '.join(parts) or 'none'}{made}; now {stats.documents:,} in {library}")
    without = stats.passages - stats.vectors
    if stats.encoder is None:
        found = "found by their words alone" if stats.discourse is None else "found by words and cdv search alone"
        source.console.print(
            f"No encoder: passages are {found}. Fix: {kept.models.command(stats.discourse is not None)}."
        )
    elif without:
        source.console.print(f"{without:,} passages have no vector yet. Fix: capr encode {library}.")
    if stats.discourse is not None and stats.passages_with_sentences < stats.passages:
        without = stats.passages - stats.passages_with_sentences
        source.console.print(
            f"The sentences of {without:,} passages have no vectors yet. Fix: {kept.models.discourse_command()}."
        )
    source.finish()

"""`capr encode`: give the passages of a library, or their sentences, vectors."""

from __future__ import annotations

from typing import Annotated

import typer

from capr.cli import inputs
from capr.search import Library
from capr.search.models import NONE

Encoder = Annotated[
    str | None,
    typer.Option(
        "--encoder", metavar="FOLDER", help="Makes the vectors of passages; capr: that ships; none: only sentences."
    ),
]


def command(library: inputs.LibraryFolder, encoder: Encoder = None, discourse: inputs.Discourse = None) -> None:
    """Give every passage a vector, so that it is found by its meaning; vectors of another encoder are dropped.

    With --discourse, every sentence gets one instead, for cdv search; with both options, both do. Without any, the
    models that the library remembers go on; one that remembers none takes the encoder that ships. Interrupted, the same
    command goes on where it stopped.

    Example: capr encode library --encoder models/encoder
    """
    with Library(library) as kept, inputs.progress("passages") as tell:
        before = kept.stats()
        kept.encode(encoder, tell, discourse=discourse)
        stats = kept.stats()
    console = inputs.terminal()
    if stats.encoder is not None and encoder != NONE and (discourse is None or encoder is not None):
        same = before.encoder is not None and before.encoder.digest == stats.encoder.digest
        done = inputs.counted(stats.vectors - (before.vectors if same else 0), "passage")
        console.print(f"{done} encoded by {stats.encoder.name}; now {stats.vectors:,} have vectors")
    if stats.discourse is not None and discourse != NONE and (encoder in (None, NONE) or discourse is not None):
        same = before.discourse is not None and before.discourse.digest == stats.discourse.digest
        done = inputs.counted(stats.sentences - (before.sentences if same else 0), "sentence")
        console.print(f"{done} encoded by {stats.discourse.name}; now {stats.sentences:,} have vectors")

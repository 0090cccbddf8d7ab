"""`capr encode`: encode the passages or sentences of a library as vectors."""

from __future__ import annotations

from typing import Annotated

import typer

from capr.cli import inputs
from capr.search import Library
from capr.search.models import NONE

Encoder = Annotated[
    str | None,
    typer.Option(
        "--encoder", metavar="FOLDER", help="The encoder of passages; capr: the built-in encoder; none: only sentences."
    ),
]


def command(library: inputs.LibraryLocation, encoder: Encoder = None, discourse: inputs.Discourse = None) -> None:
    """Encode every passage as a vector, for dense search; this replaces the vectors of another encoder.

    With --discourse, capr encodes every sentence instead, for cdv search; with both options, both. Without options, it
    uses the models that the library remembers, or the built-in encoder if the library remembers none. After an
    interruption, the same command continues.

    Example: capr encode library --encoder models/encoder
    """
    with Library(library) as opened, inputs.progress("passages") as report_progress:
        stats_before = opened.stats()
        opened.encode(encoder, report_progress, discourse=discourse)
        stats = opened.stats()
    console = inputs.terminal()
    if stats.encoder is not None and encoder != NONE and (discourse is None or encoder is not None):
        is_same_model = stats_before.encoder is not None and stats_before.encoder.digest == stats.encoder.digest
        encoded = inputs.quantity(stats.vectors - (stats_before.vectors if is_same_model else 0), "passage")
        console.print(f"{encoded} encoded by {stats.encoder.name}; now {stats.vectors:,} have vectors")
    if stats.discourse is not None and discourse != NONE and (encoder in (None, NONE) or discourse is not None):
        is_same_model = stats_before.discourse is not None and stats_before.discourse.digest == stats.discourse.digest
        encoded = inputs.quantity(stats.sentences - (stats_before.sentences if is_same_model else 0), "sentence")
        console.print(f"{encoded} encoded by {stats.discourse.name}; now {stats.sentences:,} have vectors")

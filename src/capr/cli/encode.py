"""`capr encode`: give the passages of a library vectors."""

from __future__ import annotations

from capr.cli import inputs
from capr.search import Library


def command(library: inputs.LibraryFolder, encoder: inputs.Encoder = None) -> None:
    """Give every passage a vector, so that it is found by its meaning; vectors of another encoder are dropped.

    Interrupted, the same command goes on where it stopped.

    Example: capr encode library --encoder models/encoder
    """
    with Library(library, encoder=encoder) as kept, inputs.progress("passages") as tell:
        done = kept.encode(on_commit=tell)
        stats = kept.stats()
    name = stats.encoder.name if stats.encoder else ""
    inputs.terminal().print(f"{inputs.counted(done, 'passage')} encoded by {name}; now {stats.vectors:,} have vectors")

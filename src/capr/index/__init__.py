"""The index: documents, passages and vectors on disk, found by words and by meaning."""

from capr.index.discourse import Discourse
from capr.index.embedded import EmbeddedIndex
from capr.index.encoder import Encoder, OnnxEncoder
from capr.index.filters import Filters
from capr.index.part import Part
from capr.index.protocol import (
    Clause,
    Entry,
    Found,
    Grain,
    Index,
    Patient,
    Prepared,
    Sentences,
    Stats,
    Stored,
    Writer,
)

__all__ = [
    "Clause",
    "Discourse",
    "EmbeddedIndex",
    "Encoder",
    "Entry",
    "Filters",
    "Found",
    "Grain",
    "Index",
    "OnnxEncoder",
    "Part",
    "Patient",
    "Prepared",
    "Sentences",
    "Stats",
    "Stored",
    "Writer",
]

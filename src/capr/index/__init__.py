"""The index: documents, passages and vectors on disk, found by words and by meaning."""

from capr.index.embedded import EmbeddedIndex
from capr.index.encoder import Encoder, OnnxEncoder
from capr.index.filters import Filters
from capr.index.protocol import Clause, Entry, Found, Index, Prepared, Stats, Stored, Writer

__all__ = [
    "Clause",
    "EmbeddedIndex",
    "Encoder",
    "Entry",
    "Filters",
    "Found",
    "Index",
    "OnnxEncoder",
    "Prepared",
    "Stats",
    "Stored",
    "Writer",
]

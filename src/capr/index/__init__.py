"""The index: documents, passages and vectors, searched by words and by meaning. Engines implement it."""

from capr.deprecation import renamed_attributes
from capr.index.engines import ENGINES, open_index
from capr.index.filtered import FilteredIndex
from capr.index.filters import Filters
from capr.index.protocol import Index, Maintained, OtherModelError, Writer, maintained
from capr.index.records import (
    Clause,
    PassageEntry,
    PassageKey,
    PassageMatch,
    PassageVectors,
    Patient,
    PreparedDocument,
    SpaceStats,
    SpanVectors,
    Stats,
    StoredPassage,
    Verification,
)
from capr.index.spaces import PASSAGES, PIECES, SENTENCES, SPACES, Space
from capr.runtime.discourse import Discourse
from capr.runtime.encoder import Encoder, OnnxEncoder

__all__ = [
    "ENGINES",
    "PASSAGES",
    "PIECES",
    "SENTENCES",
    "SPACES",
    "Clause",
    "Discourse",
    "Encoder",
    "FilteredIndex",
    "Filters",
    "Index",
    "Maintained",
    "OnnxEncoder",
    "OtherModelError",
    "PassageEntry",
    "PassageKey",
    "PassageMatch",
    "PassageVectors",
    "Patient",
    "PreparedDocument",
    "Space",
    "SpaceStats",
    "SpanVectors",
    "Stats",
    "StoredPassage",
    "Verification",
    "Writer",
    "maintained",
    "open_index",
]

__getattr__ = renamed_attributes(
    __name__,
    {
        "Check": "Verification",
        "Entry": "PassageEntry",
        "Found": "PassageMatch",
        "Key": "PassageKey",
        "Part": "FilteredIndex",
        "Prepared": "PreparedDocument",
        "Stored": "StoredPassage",
    },
)

"""The sentences of a passage as they are kept: where each stands, and its vector in 8 bits for each dimension."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from capr.documents import Span
from capr.index.onnx import Floats
from capr.index.protocol import Sentences
from capr.index.vectors import encoded

RECORD = 12  # bytes beside the dimensions: begin, end and scale, 32 bits each
SUM = 4  # bytes of the checksum at the end


def allotted(spans: Sequence[Span], vectors: Floats, passages: Sequence[Span]) -> list[Sentences]:
    """The sentences of a document by passage.

    A sentence belongs to the passage that covers it, or that holds most of it. A passage that would have none, since it
    is a small part of a sentence, has that one.

    Args:
        spans: the sentences, in their order.
        vectors: (sentences, dimensions).
        passages: in their order, apart from each other.
    """
    begins = [passage.begin for passage in passages]
    own: list[list[int]] = [[] for _ in passages]
    most: dict[int, tuple[int, int]] = {}  # of passages, how much of a sentence they hold
    for row, span in enumerate(spans):
        shares = []
        place = max(0, bisect_right(begins, span.begin) - 1)
        while place < len(passages) and passages[place].begin < span.end:
            shared = min(span.end, passages[place].end) - max(span.begin, passages[place].begin)
            if shared > 0:
                shares.append((shared, -place))
                most[place] = max(most.get(place, (0, 0)), (shared, -row))
            place += 1
        if shares:
            own[-max(shares)[1]].append(row)
    for place, rows in enumerate(own):
        if not rows and place in most:
            rows.append(-most[place][1])
    return [Sentences(tuple(spans[row] for row in rows), vectors[rows]) for rows in own]


def packed(sentences: Sentences) -> bytes:
    """Sentences as bytes: begin, end and the code of each, as `encoded` makes it; and a checksum."""
    vectors = sentences.vectors
    scales = np.maximum(np.abs(vectors).max(axis=1, keepdims=True, initial=0), 1e-12).astype(np.float32) / 127
    parts = (
        np.array(sentences.spans, np.int32).reshape(-1, 2),
        scales.astype(np.float32),
        np.rint(vectors / scales).astype(np.int8),
    )
    data = np.concatenate([np.ascontiguousarray(part).view(np.uint8) for part in parts], axis=1).tobytes()
    return data + zlib.crc32(data).to_bytes(SUM, "little")


def unpacked(data: bytes, dimensions: int) -> Sentences:
    """The sentences of what `packed` gave; `ValueError` if it is not that."""
    if len(data) < SUM or zlib.crc32(data[:-SUM]) != int.from_bytes(data[-SUM:], "little"):
        raise ValueError("the sentences of a passage are not what was kept")
    records = np.frombuffer(data, np.uint8, len(data) - SUM).reshape(-1, RECORD + dimensions)
    bounds = np.ascontiguousarray(records[:, :8]).view(np.int32).tolist()
    scales = np.ascontiguousarray(records[:, 8:RECORD]).view(np.float32)
    codes = np.ascontiguousarray(records[:, RECORD:]).view(np.int8)
    return Sentences(tuple(Span(*pair) for pair in bounds), codes.astype(np.float32) * scales)


def meant(data: bytes, dimensions: int) -> bytes:
    """The mean of the vectors as the index of vectors holds it; of no sentences, a code that is never found.

    The mean of the dot products of a query with some vectors is its dot product with their mean, so that one vector for
    each passage is enough to find the passages whose sentences score best on average.
    """
    vectors = unpacked(data, dimensions).vectors
    return encoded(vectors.mean(axis=0, dtype=np.float32)) if len(vectors) else bytes(4 + dimensions)

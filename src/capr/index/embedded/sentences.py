"""The stored form of a passage's sentences: the span of each, and its vector with 8 bits for each dimension.

Stored forms end with a checksum, because a flipped bit would otherwise change scores without an error.
"""

from __future__ import annotations

import zlib

import numpy as np

from capr.documents import Span
from capr.index.embedded.vectors import encode
from capr.index.records import SpanVectors

RECORD = 12  # bytes before the dimensions: begin, end and scale, 32 bits each
SUM = 4  # bytes of the checksum at the end


def pack(sentences: SpanVectors) -> bytes:
    """Return sentences as bytes: begin, end and the code of each (see `encode`), and a checksum."""
    vectors = sentences.vectors
    scales = np.maximum(np.abs(vectors).max(axis=1, keepdims=True, initial=0), 1e-12).astype(np.float32) / 127
    parts = (
        np.array(sentences.spans, np.int32).reshape(-1, 2),
        scales.astype(np.float32),
        np.rint(vectors / scales).astype(np.int8),
    )
    return with_sum(np.concatenate([np.ascontiguousarray(part).view(np.uint8) for part in parts], axis=1).tobytes())


def unpack(data: bytes, dimensions: int) -> SpanVectors:
    """Return the sentences that `pack` made into bytes; raise `ValueError` if the bytes were altered."""
    records = np.frombuffer(without_sum(data), np.uint8).reshape(-1, RECORD + dimensions)
    bounds = np.ascontiguousarray(records[:, :8]).view(np.int32).tolist()
    scales = np.ascontiguousarray(records[:, 8:RECORD]).view(np.float32)
    codes = np.ascontiguousarray(records[:, RECORD:]).view(np.int8)
    return SpanVectors(tuple(Span(*pair) for pair in bounds), codes.astype(np.float32) * scales)


def with_sum(data: bytes) -> bytes:
    """Return data with a checksum at its end."""
    return data + zlib.crc32(data).to_bytes(SUM, "little")


def without_sum(data: bytes) -> bytes:
    """Return the data of `with_sum`; raise `ValueError` if the bytes were altered."""
    if len(data) < SUM or zlib.crc32(data[:-SUM]) != int.from_bytes(data[-SUM:], "little"):
        raise ValueError("the vectors of a passage differ from what was written")
    return data[:-SUM]


def mean_code(data: bytes, dimensions: int) -> bytes:
    """Return the code of the sentences' mean vector; without sentences, a code that no search finds.

    The mean of a query's dot products with several vectors is its dot product with their mean. So one vector for each
    passage is enough to find the passages whose sentences score best on average.
    """
    vectors = unpack(data, dimensions).vectors
    return encode(vectors.mean(axis=0, dtype=np.float32)) if len(vectors) else bytes(4 + dimensions)

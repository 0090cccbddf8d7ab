"""Late interaction without torch: vectors of word pieces in little space, and their comparison by MaxSim.

A passage has a vector for each run of word pieces: at most `RUNS`, cut where neighbouring pieces are least alike. Each
value has four bits. With 64 dimensions, a passage takes at most 1,472 bytes.

References: Khattab and Zaharia, ColBERT, 2020; Santhanam et al., ColBERTv2, 2022 (few bits per value); Clavié et al.,
Reducing the Footprint of Multi-Vector Retrieval with Minimal Performance Impact via Token Pooling, 2024.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from capr.runtime.onnx import Floats

RUNS = 46
LEVELS = 16
STEP = 0.3352  # the best distance between 16 levels for values with a normal distribution
LOWEST = -STEP * (LEVELS - 1) / 2
# The two values of a byte: of its low and of its high four bits.
VALUES = np.array([(LOWEST + STEP * (byte % LEVELS), LOWEST + STEP * (byte // LEVELS)) for byte in range(256)], "f4")
PAIRS = VALUES.view(np.uint64)[:, 0]  # both values of a byte in one number, which is several times faster to look up


def pool(pieces: Floats, runs: int = RUNS) -> Floats:
    """Join neighbouring pieces, the most similar first, until so many vectors are left.

    Args:
        pieces: (pieces, dimensions), of length 1.
        runs: the maximum number of vectors.

    Returns:
        (runs, dimensions), the mean of each run, of length 1.

    Example:
        >>> pool(np.array([[1, 0], [1, 0], [0, 1]], np.float32), 2).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    if len(pieces) <= runs:
        return pieces
    similarities = (pieces[1:] * pieces[:-1]).sum(1)
    borders = np.sort(np.argsort(similarities, kind="stable")[: runs - 1]) + 1
    sums = np.add.reduceat(pieces, np.concatenate(([0], borders)), axis=0)
    means: Floats = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    return means


def pack(vectors: Floats) -> bytes:
    """Return vectors of length 1 with four bits for each value. Their dimensions are an even number."""
    scaled = vectors * math.sqrt(vectors.shape[1])  # values with a variance of about 1
    levels = np.clip(np.rint((scaled - LOWEST) / STEP), 0, LEVELS - 1).astype(np.uint8)
    code: bytes = (levels[:, ::2] | (levels[:, 1::2] << 4)).tobytes()
    return code


def unpack(code: bytes, dimensions: int) -> Floats:
    """Return the vectors of `pack`, of length 1: (vectors, dimensions).

    Raises:
        ValueError: the code is not one of vectors with these dimensions.
    """
    if dimensions < 2 or dimensions % 2 or len(code) % (dimensions // 2):
        raise ValueError(f"{len(code)} bytes are no vectors of {dimensions} dimensions in four bits")
    vectors = PAIRS[np.frombuffer(code, np.uint8)].view(np.float32).reshape(-1, dimensions)
    unit: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def maxsim(query: Floats, passages: Sequence[bytes]) -> NDArray[np.float32]:
    """Return for each passage the mean, over the query's pieces, of the best product with one of its vectors.

    Each passage has a product of its own. Such a small one takes a single thread, so that a score does not depend on
    the other passages, and starting threads takes no time.

    Args:
        query: (pieces, dimensions), of length 1.
        passages: the codes of `pack`; an empty one scores 0.
    """
    scores = np.zeros(len(passages), np.float32)
    filled = [position for position, code in enumerate(passages) if code]
    if not filled or not len(query):
        return scores
    dimensions = query.shape[1]
    vectors = unpack(b"".join(passages[position] for position in filled), dimensions)
    end = 0
    for position in filled:
        begin, end = end, end + len(passages[position]) // (dimensions // 2)
        scores[position] = (query @ vectors[begin:end].T).max(1).mean()  # from (pieces, vectors)
    return scores

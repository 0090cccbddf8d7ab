"""The vector index: the nearest passages by dot product.

It is derived from the table of a space, and grows with it. For every vector it stores an 8-bit code and one bit for
each dimension: the sign of the difference from the centre. A search compares the bits of the query with all bits (a
million in a few milliseconds), then the query with the codes of the passages with the most equal bits. The index needs
no training, takes additions at any time, and is exact for small sets. On real questions it finds more of the true
neighbours in less time than inverted lists or a graph (docs/benchmarks.md).
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capr.index.embedded.derived import STATE, DamagedError, Match, load_state, save_state
from capr.runtime.identity import Vector

FORMAT = 1
ARRAYS = ("numbers", "codes", "scales", "bits", "centre")
CENTRE = 10_000  # the centre is the mean of the first vectors, at most this many
MIN_RESCORED = 1000  # passages whose codes are compared, at least
MAX_UNSCREENED = 2000  # passages whose codes are compared without comparing the bits first
SPARSE = 0.25  # a filter that leaves less than this share is applied before the bits are compared


def encode(vector: Vector) -> bytes:
    """Return a 32-bit scale and 8 bits for each dimension; the vector is their product."""
    scale = np.float32(max(float(np.abs(vector).max(initial=0)), 1e-12) / 127)
    code: bytes = scale.tobytes() + np.rint(vector / scale).astype(np.int8).tobytes()
    return code


def decode(code: bytes) -> Vector:
    """Return the vector of a code."""
    scale = np.frombuffer(code, np.float32, 1)
    vector: Vector = np.frombuffer(code, np.int8, offset=4).astype(np.float32) * scale
    return vector


@dataclass(frozen=True)
class VectorState:
    """The contents of the files.

    Attributes:
        source: the model and version of the vectors in the table; see `VectorTables.source`.
        dimensions: the number of dimensions of a vector.
        through: the last sequence number of the table that is in the index.
        rows: the number of vectors.
        sums: the checksum of each file.
        epoch: part of the file names. A rebuilt index gets another one, because readers may have the old files open.
        format: the version of the file format.
    """

    source: str = ""
    dimensions: int = 0
    through: int = 0
    rows: int = 0
    sums: dict[str, int] = field(default_factory=dict)
    epoch: int = 0
    format: int = FORMAT

    def file(self, name: str) -> str:
        """Return the name of an array's file."""
        return f"{name}-{self.epoch}"


class VectorIndex:
    """One state of the index; vectors that are appended later are invisible."""

    def __init__(self, folder: Path) -> None:
        """Open the index; raise `DamagedError` if it cannot be read."""
        self.folder = folder
        try:
            self._open()
        except (OSError, ValueError, TypeError) as error:
            raise DamagedError(str(error)) from error

    def _open(self) -> None:
        folder = self.folder
        self.state = VectorState(**load_state(folder))
        if self.state.format != FORMAT:
            raise ValueError(f"format {self.state.format}")
        for name, (kind, shape) in _layout(self.state).items():
            size = int(np.prod(shape)) * np.dtype(kind).itemsize
            file = folder / self.state.file(name)
            if file.stat().st_size < size:
                raise ValueError(f"{file.name} is too short")
            array = np.memmap(file, kind, "r", shape=shape) if size else np.zeros(shape, kind)
            setattr(self, name, np.asarray(array))

    numbers: NDArray[np.int64]
    codes: NDArray[np.int8]
    scales: NDArray[np.float32]
    bits: NDArray[np.uint8]
    centre: Vector

    def __len__(self) -> int:
        return self.state.rows

    def among(self, allowed: NDArray[np.bool_]) -> int:
        """Return how many of the allowed passages have a vector."""
        return int(np.count_nonzero(self._passing(allowed)))

    def size(self) -> int:
        """Return the bytes of the arrays."""
        return sum(getattr(self, name).nbytes for name in ARRAYS)

    def damaged(self) -> list[str]:
        """Return the arrays with a wrong checksum."""
        return [name for name in ARRAYS if zlib.crc32(getattr(self, name)) != self.state.sums.get(name, 0)]

    def search(self, vector: Vector, k: int, allowed: NDArray[np.bool_], filtered: bool) -> list[Match]:
        """Return the k nearest passages, best first.

        Args:
            vector: the vector of the query.
            k: the maximum number of matches.
            allowed: by number, whether a passage may match.
            filtered: whether `allowed` excludes passages other than removed ones.
        """
        share = (self._nonzero(vector).stop - self._nonzero(vector).start) / max(1, self.bits.shape[1])
        rescored = int(MIN_RESCORED / share**2)  # fewer bits separate passages less well
        rows = self._candidates(vector, max(rescored, 3 * k), allowed, filtered)
        # einsum uses one thread: for such a small product, starting threads takes longer than computing it
        scores = np.einsum("ij,j->i", self.codes[rows].astype(np.float32), vector) * self.scales[rows]
        best = np.lexsort((self.numbers[rows], -scores))
        best = best[self.scales[rows[best]] > 0][:k]  # the scale of a passage without sentences is 0
        return [Match(int(self.numbers[rows[i]]), float(scores[i])) for i in best]

    def _candidates(self, vector: Vector, count: int, allowed: NDArray[np.bool_], filtered: bool) -> NDArray[np.int64]:
        """Return the rows of the `count` passages with the most equal bits, or all rows if there are few."""
        total = len(self)
        if filtered:
            passing = np.flatnonzero(self._passing(allowed))
            if len(passing) <= max(MAX_UNSCREENED, count):
                return passing
            if len(passing) < SPARSE * total:
                nearest = self._nearest(vector, np.ascontiguousarray(self.bits[passing]), count)
                return passing[nearest]
            limit = int(count * total / len(passing) * 1.2)
        elif total <= max(MAX_UNSCREENED, count):
            return np.flatnonzero(self._passing(allowed))
        else:
            limit = count
        while True:
            nearest = self._nearest(vector, self.bits, min(limit, total))
            nearest = nearest[self._passing(allowed, nearest)]
            if len(nearest) >= count or limit >= total:
                return nearest[:count]
            limit *= 2

    def _passing(self, allowed: NDArray[np.bool_], rows: Any = slice(None)) -> NDArray[np.bool_]:
        """Return which rows are allowed; rows that were added after `allowed` was made are not."""
        numbers = self.numbers[rows]
        passing: NDArray[np.bool_] = allowed.take(numbers, mode="clip") & (numbers >= 0) & (numbers < len(allowed))
        return passing

    def _nonzero(self, vector: Vector) -> slice:
        """Return the range of bytes in which a query is not 0: all, or one half if it has only an entity or aspect."""
        nonzero = np.flatnonzero(np.packbits(vector != 0))
        return slice(int(nonzero[0]), int(nonzero[-1]) + 1) if len(nonzero) else slice(0, self.bits.shape[1])

    def _nearest(self, vector: Vector, bits: NDArray[np.uint8], count: int) -> NDArray[np.int64]:
        """Return the rows of the `count` passages with the most equal bits."""
        import faiss  # the import is slow, and small libraries do not need it

        query = np.packbits(vector[None] > self.centre, axis=1)
        nonzero = self._nonzero(vector)
        query, bits = np.ascontiguousarray(query[:, nonzero]), np.ascontiguousarray(bits[:, nonzero])
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)  # faiss uses one thread for each query, and this is one query
        try:
            _, rows = faiss.knn_hamming(query, bits, min(count, len(bits)), variant="mc")
        finally:
            faiss.omp_set_num_threads(threads)
        nearest: NDArray[np.int64] = rows[0][rows[0] >= 0]
        return nearest


class VectorIndexWriter:
    """Appends to the files. New data becomes valid when the new state file replaces the old one."""

    def __init__(self, folder: Path, source: str, dimensions: int, fresh: bool = False) -> None:
        """Continue the existing index if it is intact and from the same source; with `fresh`, start a new one."""
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.state = VectorState(source, dimensions, epoch=time.time_ns())
        if (folder / STATE).is_dir():
            _delete(folder / STATE)
        if not fresh:
            with suppress(DamagedError):
                state = VectorIndex(folder).state
                if (state.source, state.dimensions) == (source, dimensions):
                    self.state = state

    def append(self, numbers: Sequence[int], codes: Iterable[bytes], through: int) -> None:
        """Append vectors in the format of `encode`; `through` is the last sequence number."""
        dimensions = self.state.dimensions
        packed = np.frombuffer(b"".join(codes), np.uint8).reshape(len(numbers), 4 + dimensions)
        scales = np.ascontiguousarray(packed[:, :4]).view(np.float32)
        signed = np.ascontiguousarray(packed[:, 4:]).view(np.int8)
        vectors = signed.astype(np.float32) * scales
        if self.state.rows:
            centre = np.fromfile(self.folder / self.state.file("centre"), np.float32)
        else:
            centre = vectors[:CENTRE].mean(axis=0, dtype=np.float32) if len(numbers) else np.zeros(0, np.float32)
        arrays: dict[str, NDArray[Any]] = {
            "numbers": np.array(numbers, np.int64),
            "codes": signed,
            "scales": scales,
            "bits": np.packbits(vectors > centre, axis=1) if len(numbers) else np.zeros(0, np.uint8),
            "centre": centre,
        }
        sums = dict(self.state.sums)
        for name, array in arrays.items():
            if name == "centre" and self.state.rows:
                continue
            kind, shape = _layout(self.state)[name]
            begin = int(np.prod(shape)) * np.dtype(kind).itemsize
            data = np.ascontiguousarray(array).tobytes()
            _write(self.folder / self.state.file(name), begin, data)
            sums[name] = zlib.crc32(data, sums[name] if begin else 0)
        rows = self.state.rows + len(numbers)
        self.state = replace(self.state, through=through, rows=rows, sums=sums)
        save_state(self.folder, asdict(self.state))
        for file in self.folder.iterdir():
            if file.name != STATE and not file.name.endswith(f"-{self.state.epoch}"):
                _delete(file)


def _layout(state: VectorState) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return the type and the shape of each array."""
    rows, dimensions = state.rows, state.dimensions
    return {
        "numbers": ("i8", (rows,)),
        "codes": ("i1", (rows, dimensions)),
        "scales": ("f4", (rows,)),
        "bits": ("u1", (rows, (dimensions + 7) // 8)),
        "centre": ("f4", (dimensions if rows else 0,)),
    }


def _delete(path: Path) -> None:
    if path.is_dir():
        rmtree(path)
    else:
        path.unlink()


def _write(file: Path, begin: int, data: bytes) -> None:
    """Write data at an offset, and truncate the file there first: later bytes were left by a crash."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        os.ftruncate(descriptor, begin)
        os.lseek(descriptor, begin, os.SEEK_SET)
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

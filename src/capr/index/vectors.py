"""The index of vectors: the nearest passages by dot product.

Derived from the table of a grain, and appended to as that grows. For every vector it holds its 8-bit code and one bit
for each dimension, the sign of its difference from the centre. A query is compared with all bits (a million in a few
milliseconds), and the passages with the most equal bits with their codes. That needs no training, takes additions as
they come, is exact for small sets, and on real questions finds more of the true neighbours in less time than inverted
lists or a graph (docs/benchmarks.md).
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

from capr.index.derived import STATE, DamagedError, load_state, save_state
from capr.index.protocol import Found, Grain, Vector

FORMAT = 1
FOLDERS = {Grain.PASSAGES: "vectors", Grain.SENTENCES: "sentences"}
ARRAYS = ("numbers", "codes", "scales", "bits", "centre")
CENTRE = 10_000  # vectors whose mean is the centre
RESCORED = 1000  # passages compared by their codes, at least
FEW = 2000  # so few are compared by their codes at once
SPARSE = 0.25  # a filter that leaves less than this share is applied before the bits are compared


def encoded(vector: Vector) -> bytes:
    """A vector in 8 bits for each dimension, after the 32-bit scale that they are multiplied with."""
    scale = np.float32(max(float(np.abs(vector).max(initial=0)), 1e-12) / 127)
    code: bytes = scale.tobytes() + np.rint(vector / scale).astype(np.int8).tobytes()
    return code


def decoded(code: bytes) -> Vector:
    """The vector of a code."""
    scale = np.frombuffer(code, np.float32, 1)
    vector: Vector = np.frombuffer(code, np.int8, offset=4).astype(np.float32) * scale
    return vector


@dataclass(frozen=True)
class State:
    """What the files hold.

    Attributes:
        source: which vectors they are, of all that the table has had.
        dimensions: of the vectors.
        through: the last sequence number of the table that is in.
        rows: how many vectors there are.
        sums: checksum of each file.
        epoch: part of the files' names; another one when they are made anew, since readers may hold the old ones.
        format: of the files.
    """

    source: str = ""
    dimensions: int = 0
    through: int = 0
    rows: int = 0
    sums: dict[str, int] = field(default_factory=dict)
    epoch: int = 0
    format: int = FORMAT

    def file(self, name: str) -> str:
        """The name of the file that holds an array."""
        return f"{name}-{self.epoch}"


class Vectors:
    """The files as they are now; what is appended later is not seen."""

    def __init__(self, folder: Path) -> None:
        """Opens the index; raises `DamagedError` if it cannot be read."""
        self.folder = folder
        try:
            self._open()
        except (OSError, ValueError, TypeError) as error:
            raise DamagedError(str(error)) from error

    def _open(self) -> None:
        folder = self.folder
        self.state = State(**load_state(folder))
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
        """How many of the passages that are allowed have a vector."""
        return int(np.count_nonzero(self._passing(allowed)))

    def size(self) -> int:
        """Bytes."""
        return sum(getattr(self, name).nbytes for name in ARRAYS)

    def damaged(self) -> list[str]:
        """The files whose checksum is wrong."""
        return [name for name in ARRAYS if zlib.crc32(getattr(self, name)) != self.state.sums.get(name, 0)]

    def search(self, vector: Vector, k: int, allowed: NDArray[np.bool_], filtered: bool) -> list[Found]:
        """The k nearest, best first.

        Args:
            vector: of the query.
            k: how many.
            allowed: by number, whether a passage may be found.
            filtered: whether `allowed` leaves out more than what was removed.
        """
        share = (self._telling(vector).stop - self._telling(vector).start) / max(1, self.bits.shape[1])
        least = int(RESCORED / share**2)  # fewer bits tell less, so that more have to be looked at
        rows = self._candidates(vector, max(least, 3 * k), allowed, filtered)
        # einsum and one thread: so small a product takes longer to share among threads than to do
        scores = np.einsum("ij,j->i", self.codes[rows].astype(np.float32), vector) * self.scales[rows]
        best = np.lexsort((self.numbers[rows], -scores))
        best = best[self.scales[rows[best]] > 0][:k]  # a passage without sentences has nothing to be compared with
        return [Found(int(self.numbers[rows[i]]), float(scores[i])) for i in best]

    def _candidates(self, vector: Vector, count: int, allowed: NDArray[np.bool_], filtered: bool) -> NDArray[np.int64]:
        """The rows of so many passages with the most equal bits; all, if there are few."""
        total = len(self)
        if filtered:
            passing = np.flatnonzero(self._passing(allowed))
            if len(passing) <= max(FEW, count):
                return passing
            if len(passing) < SPARSE * total:
                nearest = self._nearest(vector, np.ascontiguousarray(self.bits[passing]), count)
                return passing[nearest]
            wanted = int(count * total / len(passing) * 1.2)
        elif total <= max(FEW, count):
            return np.flatnonzero(self._passing(allowed))
        else:
            wanted = count
        while True:
            nearest = self._nearest(vector, self.bits, min(wanted, total))
            nearest = nearest[self._passing(allowed, nearest)]
            if len(nearest) >= count or wanted >= total:
                return nearest[:count]
            wanted *= 2

    def _passing(self, allowed: NDArray[np.bool_], rows: Any = slice(None)) -> NDArray[np.bool_]:
        """Whether rows are allowed; what was added since `allowed` was made is not."""
        numbers = self.numbers[rows]
        passing: NDArray[np.bool_] = allowed.take(numbers, mode="clip") & (numbers >= 0) & (numbers < len(allowed))
        return passing

    def _telling(self, vector: Vector) -> slice:
        """The bytes of the bits in which a query is not 0: all, or those of its half."""
        found = np.flatnonzero(np.packbits(vector != 0))
        return slice(int(found[0]), int(found[-1]) + 1) if len(found) else slice(0, self.bits.shape[1])

    def _nearest(self, vector: Vector, bits: NDArray[np.uint8], count: int) -> NDArray[np.int64]:
        import faiss  # takes a while, which those who do without it need not wait

        asked = np.packbits(vector[None] > self.centre, axis=1)
        telling = self._telling(vector)
        asked, bits = np.ascontiguousarray(asked[:, telling]), np.ascontiguousarray(bits[:, telling])
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)  # it would share queries among threads, and this is one
        try:
            _, rows = faiss.knn_hamming(asked, bits, min(count, len(bits)), variant="mc")
        finally:
            faiss.omp_set_num_threads(threads)
        found: NDArray[np.int64] = rows[0][rows[0] >= 0]
        return found


class VectorsWriter:
    """Appends to the files. What was written counts once the state is renamed into its place."""

    def __init__(self, folder: Path, source: str, dimensions: int, fresh: bool = False) -> None:
        """Goes on with what is there, if it is sound and from the same source, unless it has to be made afresh."""
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.state = State(source, dimensions, epoch=time.time_ns())
        if (folder / STATE).is_dir():
            _take_away(folder / STATE)
        if not fresh:
            with suppress(DamagedError):
                known = Vectors(folder).state
                if (known.source, known.dimensions) == (source, dimensions):
                    self.state = known

    def append(self, numbers: Sequence[int], codes: Iterable[bytes], through: int) -> None:
        """Adds vectors, as `encoded` gives them; `through` is the last sequence number."""
        dimensions = self.state.dimensions
        packed = np.frombuffer(b"".join(codes), np.uint8).reshape(len(numbers), 4 + dimensions)
        scales = np.ascontiguousarray(packed[:, :4]).view(np.float32)
        signed = np.ascontiguousarray(packed[:, 4:]).view(np.int8)
        vectors = signed.astype(np.float32) * scales
        if self.state.rows:
            centre = np.fromfile(self.folder / self.state.file("centre"), np.float32)
        else:
            centre = vectors[:CENTRE].mean(axis=0, dtype=np.float32) if len(numbers) else np.zeros(0, np.float32)
        new: dict[str, NDArray[Any]] = {
            "numbers": np.array(numbers, np.int64),
            "codes": signed,
            "scales": scales,
            "bits": np.packbits(vectors > centre, axis=1) if len(numbers) else np.zeros(0, np.uint8),
            "centre": centre,
        }
        sums = dict(self.state.sums)
        for name, array in new.items():
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
                _take_away(file)


def _layout(state: State) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The kind and the shape of each array."""
    rows, dimensions = state.rows, state.dimensions
    return {
        "numbers": ("i8", (rows,)),
        "codes": ("i1", (rows, dimensions)),
        "scales": ("f4", (rows,)),
        "bits": ("u1", (rows, (dimensions + 7) // 8)),
        "centre": ("f4", (dimensions if rows else 0,)),
    }


def _take_away(path: Path) -> None:
    if path.is_dir():
        rmtree(path)
    else:
        path.unlink()


def _write(file: Path, begin: int, data: bytes) -> None:
    """Puts data behind what counts of a file; what a crash has left there is overwritten."""
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

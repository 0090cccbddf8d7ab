"""Files of arrays (.npz) that are there as a whole or not at all, and say so if they are damaged."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capr.documents import CaprError


def save(path: Path, compressed: bool = True, **arrays: NDArray[Any]) -> None:
    """Writes arrays by name; interrupted, it leaves the file as it was."""
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        write = np.savez_compressed if compressed else np.savez
        write(file, **arrays)  # type: ignore[arg-type]
    part.replace(path)


def load(path: Path, what: str, *names: str) -> list[NDArray[Any]]:
    """The arrays of these names; every byte is compared with its checksum.

    Args:
        path: the file.
        what: it should hold, in words.
        names: of the arrays.

    Raises:
        CaprError: the file is missing, damaged or something else.
    """
    try:
        with zipfile.ZipFile(path) as kept:  # np.load leaves the end of an array unread, and the checksum with it
            read = [io.BytesIO(kept.read(f"{name}.npy")) for name in names]
        return [np.lib.format.read_array(file, allow_pickle=False) for file in read]
    except Exception as error:  # zipfile, zlib and numpy have a dozen of their own
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        fix = "copy the folder of the model again, or train it again"
        raise CaprError(f"{path} holds no {what} ({said}). Fix: {fix}.") from error

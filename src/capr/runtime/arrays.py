"""Read and write .npz files atomically; a damaged file raises an error that names it."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capr.documents import CaprError


def save(path: Path, compressed: bool = True, **arrays: NDArray[Any]) -> None:
    """Write arrays by name; an interrupted write leaves the old file unchanged."""
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        write = np.savez_compressed if compressed else np.savez
        write(file, **arrays)  # type: ignore[arg-type]
    part.replace(path)


def load(path: Path, content: str, *names: str) -> list[NDArray[Any]]:
    """Return the arrays with these names, and check every byte against its checksum.

    Args:
        path: the file.
        content: the expected content, in words, for the error message.
        names: the names of the arrays.

    Raises:
        CaprError: the file is missing, damaged or something else.
    """
    try:
        with zipfile.ZipFile(path) as archive:  # np.load does not read to the end of an array, so skips the checksum
            members = [io.BytesIO(archive.read(f"{name}.npy")) for name in names]
        return [np.lib.format.read_array(member, allow_pickle=False) for member in members]
    except Exception as error:  # zipfile, zlib and numpy raise a dozen different types
        cause = str(error).splitlines()[0] if str(error) else type(error).__name__
        fix = "copy the folder of the model again, or train it again"
        raise CaprError(f"{path} holds no {content} ({cause}). Fix: {fix}.") from error

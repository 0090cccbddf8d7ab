"""Run the network of a model's folder (`model.onnx`, a tokenizer or word list, `manifest.json`) on ONNX Runtime."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from capr.documents import CaprError
from capr.runtime import manifest as manifests
from capr.runtime.manifest import Manifest

FILES = ("model.onnx", "tokenizer.json", manifests.FILE)
QUERY = "query.onnx"  # a separate network for queries, if the model has one
POOLINGS = ("cls", "mean")
TOGETHER = 512  # word pieces of a batch, with padding: larger batches wait for memory, which the process then keeps
POSITIONS = {  # networks with a vector for each position, and the number of positions that they do not use for text
    "bert": 0,
    "distilbert": 0,
    "electra": 0,
    "roberta": 2,
    "xlm-roberta": 2,
    "camembert": 2,
}
Floats = NDArray[np.float32]
Kind = TypeVar("Kind", bound=Manifest)


def read_manifest(folder: Path, kind: type[Kind], name: str, needed: Sequence[str] = FILES) -> Kind:
    """Return the manifest of a model's folder.

    Args:
        folder: the folder of the model.
        kind: the dataclass of the manifest.
        name: the name of the kind.
        needed: the files that the folder must have.

    Raises:
        CaprError: a file is missing, or the manifest is invalid or of another kind.
    """
    fix = f"name a folder with {' and '.join(dict.fromkeys((*needed, manifests.FILE)))}"
    for file in needed:
        if not (folder / file).is_file():
            raise manifests.lacking(folder, name, file, fix)
    path = folder / manifests.FILE
    record = manifests.read_json(folder, fix)
    actual = record.get("kind", "encoder")
    if actual != name:
        raise CaprError(f"{path} has kind {actual!r}, not {name!r}. Fix: {fix} of that kind.")
    manifest = manifests.parse(kind, record, path, fix)
    pooling = getattr(manifest, "pooling", POOLINGS[0])
    if pooling not in POOLINGS:
        raise CaprError(f"{path} has pooling {pooling!r}. Fix: use {' or '.join(POOLINGS)}.")
    return manifest


class Network:
    """A network that runs on ONNX Runtime.

    Args:
        path: the file of the network.
        threads: the number of threads of ONNX Runtime; 0 for one per core.
        known: the names of the inputs that the caller can make.

    Raises:
        CaprError: the file is missing or damaged, or the network has an input that the caller cannot make.
    """

    def __init__(self, path: Path, threads: int, known: Sequence[str]) -> None:
        self._folder = path.parent
        self._session = open_network(path, threads)
        self.inputs = tuple(entry.name for entry in self._session.get_inputs())
        self.outputs = tuple(entry.name for entry in self._session.get_outputs())
        if unknown := sorted(set(self.inputs) - set(known)):
            fact = f"it needs {', '.join(unknown)}"
            fix = f"export it with inputs among {', '.join(known)}"
            raise CaprError(f"the model in {path.parent} cannot be run: {fact}. Fix: {fix}.")

    def run(self, arrays: Mapping[str, NDArray[Any]]) -> list[Any]:
        """Return all outputs; arrays that the network does not read are ignored.

        Raises:
            CaprError: the network fails, such as on more word pieces than it has positions.
        """
        values = {name: arrays[name] for name in self.inputs}
        try:
            outputs: list[Any] = self._session.run(None, values)
        except Exception as error:  # ONNX Runtime raises types of its own
            cause = _first_line(error)
            length = max((array.shape[1] for array in values.values() if array.ndim > 1), default=0)
            fix = "if the network has fewer positions, lower pieces in manifest.json; if not, make the model again"
            fact = f"the model in {self._folder} failed on a text of {length:,} word pieces or words"
            raise CaprError(f"{fact} ({cause}). Fix: {fix}.") from error
        return outputs


def batches(lengths: Sequence[int], pieces: int = TOGETHER) -> Iterator[list[int]]:
    """Yield batches of positions of texts, the longest texts first. Texts of similar length need little padding.

    Args:
        lengths: the lengths of the texts in word pieces.
        pieces: the maximum number of word pieces of a batch, with padding; a longer text is a batch of its own.

    >>> list(batches([3, 9, 2, 20], 10))
    [[3], [1], [2, 0]]
    """
    order = sorted(range(len(lengths)), key=lambda position: lengths[position])
    while order:
        size = max(1, pieces // max(1, lengths[order[-1]]))
        yield order[-size:]
        order = order[:-size]


def open_network(path: Path, threads: int = 0) -> Any:
    """Open a session of ONNX Runtime for a file.

    Args:
        path: the file.
        threads: the number of threads of the session; 0 for one per core.

    Raises:
        CaprError: the file is missing, damaged or something else.
    """
    import onnxruntime  # imported here because it is slow

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    # Threads that spin while they wait for the next text slow down the rest of a search.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime raises types of its own
        raise not_loaded(path.parent, error) from error


def not_loaded(folder: Path, error: Exception) -> CaprError:
    """Return the error to raise when a library cannot load a file of a model."""
    cause = _first_line(error)
    fix = "copy the folder again, or make the model again"
    return CaprError(f"the model in {folder} cannot be loaded ({cause}). Fix: {fix}.")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def check_positions(folder: Path, pieces: int) -> None:
    """Raise CaprError if the configuration beside a network says that it reads fewer than `pieces` word pieces.

    Only networks with a vector for each position are limited. capr copies their `config.json` to the model's folder.
    """
    try:
        config = json.loads((folder / "config.json").read_bytes())
        reserved = POSITIONS[config["model_type"]]
        most = int(config["max_position_embeddings"]) - reserved
    except (OSError, ValueError, LookupError, TypeError):
        return  # nothing is known; `Network.run` reports a failure
    if pieces > most:
        fact = f"{folder / manifests.FILE} has pieces {pieces:,}, and its network reads at most {most:,} word pieces"
        raise CaprError(f"{fact} (config.json). Fix: write {most} or fewer as pieces.")


def files_of(folder: Path) -> tuple[str, ...]:
    """Return the names of the files that define the model of a folder."""
    return (*FILES, QUERY) if (folder / QUERY).is_file() else FILES


def digest(folder: Path) -> str:
    """Return the digest of a model's files, which is the same wherever the folder lies."""
    total = hashlib.sha256()
    for name in files_of(folder):
        with (folder / name).open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()[:32]

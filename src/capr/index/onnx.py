"""Models in folders: `model.onnx`, `tokenizer.json` and `manifest.json`, run by ONNX Runtime."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capr.documents import CaprError

FILES = ("model.onnx", "tokenizer.json", "manifest.json")
FIX = f"name a folder with {', '.join(FILES[:2])} and {FILES[2]}"
KINDS = ("encoder", "ranker", "poly", "reader")
QUERY = "query.onnx"  # of a model that has another network for queries
LEAST = 4  # word pieces: two marks, and something between
POOLINGS = ("cls", "mean")
TOGETHER = 512  # word pieces that a network reads at once, with padding: with more, it waits for memory, and keeps it
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Manifest:
    """What a program must know of a model.

    Attributes:
        name: by which people know it.
        kind: `encoder` (texts to vectors), `ranker` (query and passage to a score), `poly` (a ranker that keeps the
            vectors of a passage's tokens) or `reader` (question and paragraph to the words that answer).
        dimensions: of an encoder's vectors.
        pooling: of an encoder's token vectors: `cls` or `mean`.
        pieces: word pieces that it reads, at most.
        query: put before a query.
        passage: put before a passage.
        scale: by which a poly-encoder multiplies before its softmax.
        similarity: how vectors are compared, `cosine` or `dot`.
        codes: vectors that a poly-encoder keeps of a passage; 0 for one of each piece.
        stride: pieces that neighbouring windows of a reader share.
        question: pieces of a question that a reader reads, at most.
        answer: pieces of a reader's answer, at most; 0 for any number.
        temperature, bias: of a reader's confidence, see `capr.search.reader`.
        threshold: a reader's confidence below which there is no answer.
    """

    name: str
    kind: str = "encoder"
    dimensions: int = 0
    pooling: str = "cls"
    pieces: int = 256
    query: str = ""
    passage: str = ""
    scale: float = 1.0
    similarity: str = "cosine"
    codes: int = 0
    stride: int = 128
    question: int = 192
    answer: int = 128
    temperature: float = 1.0
    bias: float = 0.0
    threshold: float = 0.5


class OnnxModel:
    """Runs a model of a folder.

    Args:
        folder: that has it.
        kind: what it has to be.
        threads: of ONNX Runtime; 0 for as many as there are cores.
        file: the network.
        pieces: word pieces to read, at most; 0 for as many as the manifest says.

    Raises:
        CaprError: a file is missing or is not what it should be.
    """

    def __init__(self, folder: Path, kind: str, threads: int = 0, file: str = "model.onnx", pieces: int = 0) -> None:
        from tokenizers import Tokenizer

        self.folder = folder
        self.manifest = read_manifest(folder, kind)
        self._session = open_network(folder / file, threads)
        try:
            self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:  # the library has its own
            raise _not_loaded(folder, error) from error
        self._inputs = {entry.name for entry in self._session.get_inputs()}
        if unknown := self._inputs - {"input_ids", "attention_mask", "token_type_ids"}:
            fact = f"it wants {', '.join(sorted(unknown))}"
            fix = "export it with the inputs input_ids, attention_mask and, if it needs them, token_type_ids"
            raise CaprError(f"the model in {folder} cannot be run: {fact}. Fix: {fix}.")
        self.tokenizer.enable_truncation(pieces or self.manifest.pieces)
        self.tokenizer.no_padding()

    def run(self, texts: Sequence[str] | Sequence[tuple[str, str]]) -> Floats:
        """The pooled output for each text or pair of texts: (texts, outputs)."""
        encodings = self.tokenizer.encode_batch_fast(list(texts))
        found = None
        for part in batches([len(encoding.ids) for encoding in encodings]):
            pooled = self._run([encodings[i] for i in part])
            if found is None:
                found = np.zeros((len(texts), pooled.shape[1]), np.float32)
            found[part] = pooled
        return np.zeros((0, self.manifest.dimensions), np.float32) if found is None else found

    def tokens(self, texts: Sequence[str], batch: int = 32) -> Iterator[tuple[Floats, NDArray[np.bool_]]]:
        """For each text the vectors of its pieces (pieces, dimensions), and which of them are no padding."""
        encodings = self.tokenizer.encode_batch_fast(list(texts))
        for begin in range(0, len(encodings), batch):
            part = encodings[begin : begin + batch]
            states, mask = self.states(part)
            for row, encoding in enumerate(part):
                if not self.manifest.codes:
                    yield states[row, : len(encoding.ids)], mask[row, : len(encoding.ids)].astype(bool)
                else:  # codes, which all count
                    yield states[row], np.ones(states.shape[1], bool)

    def _run(self, encodings: Sequence[Any]) -> Floats:
        states, attended = self.states(encodings)
        if states.ndim == 2:  # (texts, outputs)
            pooled: Floats = states
        elif self.manifest.pooling == "mean":  # from (texts, pieces, dimensions)
            mask = attended[:, :, None]
            pooled = (states * mask).sum(1) / mask.sum(1)
        else:
            pooled = states[:, 0]
        return pooled.astype(np.float32, copy=False)

    def states(self, encodings: Sequence[Any]) -> tuple[Floats, NDArray[np.int64]]:
        """What the network gives, and which pieces are no padding."""
        shape = len(encodings), max(len(encoding.ids) for encoding in encodings)
        given = {name: np.zeros(shape, np.int64) for name in ("input_ids", "attention_mask", "token_type_ids")}
        for row, encoding in enumerate(encodings):
            length = len(encoding.ids)
            given["input_ids"][row, :length] = encoding.ids
            given["attention_mask"][row, :length] = 1
            given["token_type_ids"][row, :length] = encoding.type_ids
        (states, *_) = self._session.run(None, {name: given[name] for name in self._inputs})
        return states, given["attention_mask"]


def batches(lengths: Sequence[int], pieces: int = TOGETHER) -> Iterator[list[int]]:
    """The places of texts that are read together: of like length, so that little is padded, the longest first.

    Args:
        lengths: of the texts, in word pieces.
        pieces: that are read together, at most, with padding; a text that is longer is read alone.

    >>> list(batches([3, 9, 2, 20], 10))
    [[3], [1], [2, 0]]
    """
    order = sorted(range(len(lengths)), key=lambda place: lengths[place])
    while order:
        size = max(1, pieces // max(1, lengths[order[-1]]))
        yield order[-size:]
        order = order[:-size]


def open_network(path: Path, threads: int = 0) -> Any:
    """A session of ONNX Runtime that runs a file.

    Args:
        path: the file.
        threads: of the session; 0 for as many as there are cores.

    Raises:
        CaprError: the file is missing, damaged or something else.
    """
    import onnxruntime  # takes a while, which those who do without it need not wait

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    # Threads that wait busily for the next text slow down everything else that a search does.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library has its own
        raise _not_loaded(path.parent, error) from error


def _not_loaded(folder: Path, error: Exception) -> CaprError:
    said = str(error).splitlines()[0] if str(error) else type(error).__name__
    fix = "copy the folder again, or make the model again"
    return CaprError(f"the model in {folder} cannot be loaded ({said}). Fix: {fix}.")


def read_manifest(folder: Path, kind: str) -> Manifest:
    """The manifest of a folder that holds a model of that kind."""
    manifest = any_manifest(folder, kind)
    if manifest.kind != kind or manifest.pooling not in POOLINGS:
        fact = f"kind {manifest.kind!r}, pooling {manifest.pooling!r}"
        raise CaprError(f"{folder / 'manifest.json'} has {fact}, which is no {kind}. Fix: {FIX} of that kind.")
    return manifest


def any_manifest(folder: Path, kind: str = "model", needed: Sequence[str] = FILES) -> Manifest:
    """The manifest of a folder that holds a model, and what else is needed."""
    for name in needed:
        if not (folder / name).is_file():
            raise CaprError(f"{folder} is no {kind}: it has no {name}. Fix: {FIX}.")
    try:
        manifest = Manifest(**json.loads((folder / "manifest.json").read_text("utf-8")))
    except (ValueError, TypeError) as error:
        raise CaprError(f"{folder / 'manifest.json'} cannot be understood ({error}). Fix: {FIX}.") from error
    numbers = (
        manifest.dimensions, manifest.pieces, manifest.codes, manifest.stride, manifest.question, manifest.answer
    )  # fmt: skip
    texts = (manifest.name, manifest.kind, manifest.query, manifest.passage, manifest.similarity)
    if not (all(type(n) is int and n >= 0 for n in numbers) and all(isinstance(text, str) for text in texts)):
        fact = "dimensions, pieces and the like have to be whole numbers, and name, query and passage texts"
        raise CaprError(f"{folder / 'manifest.json'} cannot be understood: {fact}. Fix: {FIX}.")
    if manifest.pieces < LEAST:
        raise CaprError(f"{folder / 'manifest.json'} has pieces {manifest.pieces}. Fix: at least {LEAST}.")
    shares = (manifest.temperature, manifest.bias, manifest.threshold)
    if not all(type(n) in (int, float) and math.isfinite(n) for n in shares) or manifest.temperature <= 0:
        fact = "temperature, bias and threshold have to be numbers, the first above 0"
        raise CaprError(f"{folder / 'manifest.json'} cannot be understood: {fact}. Fix: {FIX}.")
    if manifest.kind not in KINDS:
        raise CaprError(f"{folder / 'manifest.json'} has kind {manifest.kind!r}. Fix: use {', '.join(KINDS)}.")
    return manifest


def files_of(folder: Path) -> tuple[str, ...]:
    """The files of a folder without which a model is another one."""
    return (*FILES, QUERY) if (folder / QUERY).is_file() else FILES


def digest(folder: Path) -> str:
    """By which a model is known, wherever it lies."""
    total = hashlib.sha256()
    for name in files_of(folder):
        with (folder / name).open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()[:32]

"""Run networks that read word pieces: texts, or pairs of texts, to vectors and scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from capr.runtime.onnx import Floats, Network, batches, check_positions, not_loaded

NAMES = ("input_ids", "attention_mask", "token_type_ids")


def load_tokenizer(folder: Path, pieces: int) -> Any:
    """Load the tokenizer of a model's folder; it truncates texts to `pieces` word pieces.

    Raises:
        CaprError: the file cannot be read.
    """
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # tokenizers raises types of its own
        raise not_loaded(folder, error) from error
    tokenizer.enable_truncation(pieces)
    tokenizer.no_padding()
    return tokenizer


def padded(encodings: Sequence[Any]) -> dict[str, NDArray[np.int64]]:
    """Return the inputs of a network for tokenized texts, each (texts, pieces)."""
    shape = len(encodings), max(len(encoding.ids) for encoding in encodings)
    arrays = {name: np.zeros(shape, np.int64) for name in NAMES}
    for row, encoding in enumerate(encodings):
        length = len(encoding.ids)
        arrays["input_ids"][row, :length] = encoding.ids
        arrays["attention_mask"][row, :length] = 1
        arrays["token_type_ids"][row, :length] = encoding.type_ids
    return arrays


class PieceModel:
    """A network with its tokenizer.

    Args:
        folder: the folder of the model.
        pieces: the maximum number of word pieces of a text; the rest of the text is not read.
        pooling: how to pool the vectors of pieces, if the network returns them: `cls` or `mean`.
        threads: the number of threads of ONNX Runtime; 0 for one per core.
        file: the file of the network.

    Raises:
        CaprError: a file is missing or invalid.
    """

    def __init__(
        self, folder: Path, pieces: int, pooling: str = "cls", threads: int = 0, file: str = "model.onnx"
    ) -> None:
        check_positions(folder, pieces)
        self._network = Network(folder / file, threads, NAMES)
        self.tokenizer = load_tokenizer(folder, pieces)
        self._pooling = pooling

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the outputs of the network."""
        return self._network.outputs

    def run(self, texts: Sequence[str] | Sequence[tuple[str, str]]) -> Floats:
        """Return the pooled output for each text or pair of texts: (texts, outputs)."""
        encodings = self.tokenizer.encode_batch_fast(list(texts))
        outputs = np.zeros((0, 0), np.float32)
        for batch in batches([len(encoding.ids) for encoding in encodings]):
            pooled = self._pool(*self.states([encodings[i] for i in batch]))
            if not len(outputs):
                outputs = np.zeros((len(texts), pooled.shape[1]), np.float32)
            outputs[batch] = pooled
        return outputs

    def tokens(self, texts: Sequence[str], batch: int = 32) -> Iterator[tuple[Floats, NDArray[np.bool_]]]:
        """Yield for each text the vectors of its pieces (pieces, dimensions), and a mask that excludes padding."""
        encodings = self.tokenizer.encode_batch_fast(list(texts))
        for begin in range(0, len(encodings), batch):
            part = encodings[begin : begin + batch]
            states, mask = self.states(part)
            for row, encoding in enumerate(part):
                yield states[row, : len(encoding.ids)], mask[row, : len(encoding.ids)].astype(bool)

    def codes(self, texts: Sequence[str], batch: int = 32) -> Iterator[Floats]:
        """Yield for each text a fixed number of vectors that represent it: (codes, dimensions)."""
        encodings = self.tokenizer.encode_batch_fast(list(texts))
        for begin in range(0, len(encodings), batch):
            yield from self.states(encodings[begin : begin + batch])[0]

    def both(self, texts: Sequence[str]) -> Iterator[tuple[int, Floats, Floats]]:
        """Yield for each text its position, its vector, and the vectors of its pieces, of a network that has both."""
        encodings = self.tokenizer.encode_batch_fast(list(texts))
        for batch in batches([len(encoding.ids) for encoding in encodings]):
            vectors, pieces = self._network.run(padded([encodings[i] for i in batch]))[:2]
            for row, position in enumerate(batch):
                yield position, vectors[row], pieces[row, : len(encodings[position].ids)]

    def both_of_query(self, text: str, width: int, mask: int) -> tuple[Floats, Floats]:
        """Return the vector of a query and those of its pieces, padded to a width with masks that no piece reads."""
        (encoding,) = self.tokenizer.encode_batch_fast([text])
        arrays = padded([encoding])
        missing = max(0, width - len(encoding.ids))
        arrays = {name: np.pad(array, ((0, 0), (0, missing))) for name, array in arrays.items()}
        arrays["input_ids"][0, len(encoding.ids) :] = mask
        vectors, pieces = self._network.run(arrays)[:2]
        return vectors[0], pieces[0]

    def states(self, encodings: Sequence[Any]) -> tuple[Floats, NDArray[np.int64]]:
        """Return the first output of the network, and a mask that excludes padding."""
        arrays = padded(encodings)
        return self._network.run(arrays)[0], arrays["attention_mask"]

    def _pool(self, states: Floats, attention: NDArray[np.int64]) -> Floats:
        if states.ndim == 2:  # (texts, outputs)
            pooled: Floats = states
        elif self._pooling == "mean":  # from (texts, pieces, dimensions)
            mask = attention[:, :, None]
            pooled = (states * mask).sum(1) / mask.sum(1)
        else:
            pooled = states[:, 0]
        return pooled.astype(np.float32, copy=False)


class TwoSided(Protocol):
    """The fields of a manifest that configure an encoder, whether it has one network or two."""

    @property
    def pieces(self) -> int: ...

    @property
    def pooling(self) -> str: ...


def two_sides(
    folder: Path, pieces: int, manifest: TwoSided, threads: int, file: str
) -> tuple[PieceModel, PieceModel | None]:
    """Return the network for passages, and the separate network for queries, if there is one.

    `pieces` is the maximum number of word pieces of a passage; 0 for that of the manifest.
    """
    query_file = file.replace("model", "query")
    passages = PieceModel(folder, pieces or manifest.pieces, manifest.pooling, threads, file)
    if not (folder / query_file).is_file():
        return passages, None
    return passages, PieceModel(folder, manifest.pieces, manifest.pooling, threads, query_file)

"""The inputs of a tagger: windows of sentences in batches, with the labels that each word may have."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from capr import segment
from capr.runtime.tagger import WORD
from capr.runtime.tagger_windows import TaggerInputs, TaggerWindow
from capr.supervise.corpora import Labelled


class LabelledWindow(NamedTuple):
    """A window, with the labels that each of its positions may have. Positions without labels do not count."""

    window: TaggerWindow
    allowed: Tensor  # (positions, labels)


def labelled_windows(
    sentences: Sequence[Labelled], reader: TaggerInputs, labels: Sequence[str], types: set[str]
) -> Iterator[LabelledWindow]:
    """Yield windows of consecutive sentences.

    A word outside all entities may have any type that the corpus does not annotate.
    """
    ids = {label: i for i, label in enumerate(labels)}
    rows = {label: [column == label for column in labels] for label in labels}
    rows["O"] = [column == "O" or column[2:] not in types for column in labels]
    flat = (label for sentence in sentences for label in sentence.labels)
    for window in reader.windows([sentence.words for sentence in sentences]):
        allowed = torch.zeros(len(window.pieces), len(ids), dtype=torch.bool)
        for position, label in zip(window.firsts, flat, strict=False):
            if position >= 0:
                allowed[position] = torch.tensor(rows[label])
        yield LabelledWindow(window, allowed)


def unlabelled_windows(texts: Sequence[str], reader: TaggerInputs, labels: int) -> Iterator[LabelledWindow]:
    """Yield windows of plain text, which the teacher labels."""
    for text in texts:
        sentences = [WORD.findall(span.of(text)) for span in segment.sentences(text)]
        for window in reader.windows([words for words in sentences if words]):
            counted = torch.zeros(len(window.pieces), labels, dtype=torch.bool)
            counted[[position for position in window.firsts if position >= 0]] = True
            yield LabelledWindow(window, counted)


def collate(batch: Sequence[LabelledWindow], reader: TaggerInputs, device: str) -> tuple[dict[str, Tensor], Tensor]:
    """Return the inputs of the network and the allowed labels (batch, positions, labels)."""
    arrays = reader.arrays([example.window for example in batch])
    inputs = {name: torch.from_numpy(array) for name, array in arrays.items()}
    allowed = nn.utils.rnn.pad_sequence([example.allowed for example in batch], batch_first=True)
    on_device = {name: tensor if name == "lengths" else tensor.to(device) for name, tensor in inputs.items()}
    return on_device, allowed.to(device)


class Batches:
    """An endless sequence of batches, which shuffles the examples for each epoch."""

    def __init__(
        self, order: Sequence[LabelledWindow], reader: TaggerInputs, size: int, seed: int, device: str
    ) -> None:
        self.order, self.reader, self.size, self.seed, self.device = order, reader, size, seed, device

    def __len__(self) -> int:
        """Return the number of batches per epoch."""
        return -(-len(self.order) // self.size)

    def __getitem__(self, number: int) -> tuple[dict[str, Tensor], Tensor]:
        epoch, position = divmod(number, len(self))
        shuffled = random.Random(f"{self.seed} epoch {epoch}").sample(self.order, len(self.order))
        return collate(shuffled[position * self.size : (position + 1) * self.size], self.reader, self.device)

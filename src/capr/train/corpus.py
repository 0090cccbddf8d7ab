"""What a tagger learns from: sentences of CoNLL files, in windows and batches."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

import capr
from capr.annotate.tagger import WORD
from capr.annotate.windows import Window, Words
from capr.documents import CaprError


class Labelled(NamedTuple):
    """A sentence of a CoNLL file: its words and their BIO labels."""

    words: list[str]
    labels: list[str]


@dataclass(frozen=True)
class Corpus:
    """A folder with train.tsv and devel.tsv. Its name stands for the guideline that its annotators followed."""

    name: str
    train: list[Labelled]
    devel: list[Labelled]

    @classmethod
    def load(cls, folder: Path) -> Corpus:
        """Reads the folder; devel.tsv may be missing."""
        if not (folder / "train.tsv").is_file():
            fix = "name a folder with train.tsv (a word and its BIO label a line), and devel.tsv if there is one"
            raise CaprError(f"{folder} has no train.tsv. Fix: {fix}.")
        devel = folder / "devel.tsv"
        return cls(folder.name, list(labelled(folder / "train.tsv")), list(labelled(devel)) if devel.is_file() else [])

    @property
    def types(self) -> set[str]:
        """What the corpus annotates."""
        return {label[2:] for sentence in self.train for label in sentence.labels if label != "O"}


def labelled(path: Path) -> Iterator[Labelled]:
    """The sentences of a CoNLL file."""
    for document in capr.read(path, format="conll", strict=True):
        words = [match.span() for match in WORD.finditer(document.text)]
        labels = ["O"] * len(words)
        for mention in document.annotated("mention"):
            inside = [
                i for i, (begin, end) in enumerate(words) if mention.span.begin <= begin and end <= mention.span.end
            ]
            for i in inside:
                labels[i] = f"{'B' if i == inside[0] else 'I'}-{mention.value['type']}"
        yield Labelled([document.text[begin:end] for begin, end in words], labels)


class Example(NamedTuple):
    """A window and which labels each of its positions may have; all false for one that does not count."""

    window: Window
    allowed: Tensor  # (positions, labels)


def examples(sentences: Sequence[Labelled], reader: Words, labels: Sequence[str], types: set[str]) -> Iterator[Example]:
    """Windows of consecutive sentences. A word outside of all entities may be of a type that the corpus leaves out."""
    ids = {label: i for i, label in enumerate(labels)}
    rows = {label: [other == label for other in labels] for label in labels}
    rows["O"] = [other == "O" or other[2:] not in types for other in labels]
    flat = (label for sentence in sentences for label in sentence.labels)
    for window in reader.windows([sentence.words for sentence in sentences]):
        allowed = torch.zeros(len(window.pieces), len(ids), dtype=torch.bool)
        for position, label in zip(window.firsts, flat, strict=False):
            if position >= 0:
                allowed[position] = torch.tensor(rows[label])
        yield Example(window, allowed)


def unlabelled(texts: Sequence[str], reader: Words, labels: int) -> Iterator[Example]:
    """Windows of plain text, of which the teacher says what they hold."""
    for text in texts:
        cut_text = [WORD.findall(span.of(text)) for span in capr.sentences(text)]
        for window in reader.windows([words for words in cut_text if words]):
            counted = torch.zeros(len(window.pieces), labels, dtype=torch.bool)
            counted[[position for position in window.firsts if position >= 0]] = True
            yield Example(window, counted)


def label_list(corpora: Sequence[Corpus]) -> list[str]:
    """O, then B and I of each type."""
    types = sorted({kind for corpus in corpora for kind in corpus.types}, reverse=True)
    if not types:
        names = ", ".join(corpus.name for corpus in corpora)
        raise CaprError(f"there is no entity in {names}. Fix: give train.tsv BIO labels such as B-Disease.")
    return ["O", *(f"{place}-{kind}" for kind in types for place in "BI")]


def collate(chosen: Sequence[Example], reader: Words, device: str) -> tuple[dict[str, Tensor], Tensor]:
    """The network's input, and the allowed labels (batch, positions, labels)."""
    arrays = reader.arrays([example.window for example in chosen])
    inputs = {name: torch.from_numpy(array) for name, array in arrays.items()}
    allowed = nn.utils.rnn.pad_sequence([example.allowed for example in chosen], batch_first=True)
    on_device = {name: tensor if name == "lengths" else tensor.to(device) for name, tensor in inputs.items()}
    return on_device, allowed.to(device)


class Batches:
    """Batches without end, shuffled anew each time round."""

    def __init__(self, order: Sequence[Example], reader: Words, size: int, seed: int, device: str) -> None:
        self.order, self.reader, self.size, self.device = list(order), reader, size, device
        self.shuffle = random.Random(seed)

    def __len__(self) -> int:
        return -(-len(self.order) // self.size)

    def __iter__(self) -> Iterator[tuple[dict[str, Tensor], Tensor]]:
        while self.order:
            self.shuffle.shuffle(self.order)
            for begin in range(0, len(self.order), self.size):
                yield collate(self.order[begin : begin + self.size], self.reader, self.device)

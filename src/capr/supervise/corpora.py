"""Annotated corpora: the sentences of CoNLL files, from which a tagger learns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from capr.documents import CaprError, read
from capr.runtime.tagger import WORD


class Labelled(NamedTuple):
    """A sentence of a CoNLL file: its words and their BIO labels."""

    words: list[str]
    labels: list[str]


@dataclass(frozen=True)
class Corpus:
    """A folder with train.tsv and devel.tsv. Its name identifies the annotation guideline of the corpus."""

    name: str
    train: list[Labelled]
    devel: list[Labelled]

    @classmethod
    def load(cls, folder: Path) -> Corpus:
        """Read the folder; devel.tsv may be missing."""
        if not (folder / "train.tsv").is_file():
            fix = "name a folder that holds train.tsv (on each line a word and its BIO label) and perhaps devel.tsv"
            raise CaprError(f"{folder} has no train.tsv. Fix: {fix}.")
        devel = folder / "devel.tsv"
        return cls(
            folder.name,
            list(read_sentences(folder / "train.tsv")),
            list(read_sentences(devel)) if devel.is_file() else [],
        )

    @property
    def types(self) -> set[str]:
        """The entity types that the corpus annotates."""
        return {label[2:] for sentence in self.train for label in sentence.labels if label != "O"}


def read_sentences(path: Path) -> Iterator[Labelled]:
    """Yield the sentences of a CoNLL file."""
    for document in read(path, format="conll", strict=True):
        words = [match.span() for match in WORD.finditer(document.text)]
        labels = ["O"] * len(words)
        for mention in document.annotated("mention"):
            inside = [
                i for i, (begin, end) in enumerate(words) if mention.span.begin <= begin and end <= mention.span.end
            ]
            for i in inside:
                labels[i] = f"{'B' if i == inside[0] else 'I'}-{mention.value['type']}"
        yield Labelled([document.text[begin:end] for begin, end in words], labels)


def label_list(corpora: Sequence[Corpus]) -> list[str]:
    """List all labels: O, then B and I of each type."""
    types = sorted({type_name for corpus in corpora for type_name in corpus.types}, reverse=True)
    if not types:
        names = ", ".join(corpus.name for corpus in corpora)
        raise CaprError(f"{names} has no entities. Fix: give train.tsv BIO labels such as B-Disease.")
    return ["O", *(f"{prefix}-{type_name}" for type_name in types for prefix in "BI")]

"""Annotated corpora, the training data of taggers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from capr.documents import read

if TYPE_CHECKING:
    from capr.models.family import Schedule
    from capr.models.tagger_family import TaggerFamily
    from capr.supervise.corpora import Corpus
    from capr.train.loop import Progress


@dataclass(frozen=True, kw_only=True)
class CorpusSource:
    """Folders of CoNLL files, and plain documents of the domain."""

    parallel: ClassVar[bool] = False

    corpora: Annotated[
        list[Path],
        typer.Argument(
            metavar="CORPUS...", help="Folders with train.tsv and devel.tsv: a word and its BIO label on each line."
        ),
    ]
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="The tagger.")]
    texts: Annotated[
        list[str] | None,
        typer.Option("--texts", metavar="FILE", help="Documents of the domain to adapt the encoder to."),
    ] = None

    def load(self, family: TaggerFamily, schedule: Schedule, first: bool) -> tuple[list[Corpus], list[str]]:
        from capr.supervise.corpora import Corpus

        corpora = [Corpus.load(folder) for folder in self.corpora]
        family.check(bool(self.texts))
        return corpora, [document.text for document in read(self.texts)] if self.texts else []

    def train(
        self, data: tuple[list[Corpus], list[str]], family: TaggerFamily, schedule: Schedule, progress: Progress
    ) -> dict[str, float]:
        from capr.train.tagging import train

        corpora, texts = data
        return train(corpora, family, schedule, self.output, texts, progress)

    def summary(self, scores: dict[str, Any]) -> str:
        return f"{self.output} is a tagger; `capr evaluate entities` measures it."

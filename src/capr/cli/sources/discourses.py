"""Whole documents with labelled sentences, the training data of discourse models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from capr.cli import inputs
from capr.cli.sources.documents import FromDocuments, format_scores
from capr.documents import read
from capr.segment import sentences

if TYPE_CHECKING:
    from capr.models.cdv_family import DiscourseFamily
    from capr.models.family import Schedule
    from capr.supervise.discourses import TrainingDiscourses
    from capr.supervise.labels import Labeller
    from capr.train.cdv import CdvSources
    from capr.train.loop import Progress


@dataclass(frozen=True, kw_only=True)
class DiscourseSource(FromDocuments):
    """Documents whose sentences are about entities and aspects, word vectors, and descriptions of entities."""

    file_name: ClassVar[str] = "training.discourses.gz"
    suffix: ClassVar[str] = ".discourses.gz"

    vectors: Annotated[
        Path | None, typer.Option("--vectors", metavar="FILE", help="Word vectors: GloVe's text, or words.npz.")
    ] = None
    descriptions: Annotated[
        list[str] | None,
        typer.Option("--descriptions", metavar="FILE", help="Documents that describe entities, for --space codes."),
    ] = None

    def load(self, family: DiscourseFamily, schedule: Schedule, first: bool) -> tuple[TrainingDiscourses, CdvSources]:
        """Load the training data; this checks the options before it reads documents, which may take an hour."""
        from capr.models.word_ranking import load_vectors
        from capr.train.cdv import CdvSources, check, split

        family.check(self.vectors is not None, bool(self.descriptions))
        sources = CdvSources(base=family.base, queries=family.queries, tuning=family.tuning(schedule))
        prepared_file = self.prepared_file(first)
        check(family.resolved(), sources, schedule.device)
        vectors = load_vectors(self.vectors) if self.vectors else None
        labeller = self.labeller()
        descriptions = list(describing(self.descriptions or [], labeller))
        data = self.labelled(prepared_file, labeller, lambda data: split(data, family.resolved(), schedule))
        return data, CdvSources(vectors, sources.base, sources.queries, descriptions, sources.tuning)

    def labelled(
        self, prepared_file: Path | None, labeller: Labeller, check: Callable[[TrainingDiscourses], object]
    ) -> TrainingDiscourses:
        """Return the training data, from a prepared file or from the documents.

        Args:
            prepared_file: a file with training data, if there is one.
            labeller: labels the documents.
            check: a function that raises an error if the data are too few. They are saved after that.
        """
        from capr.supervise.discourses import TrainingDiscourses

        if prepared_file is not None:
            return TrainingDiscourses.load(prepared_file)
        data = TrainingDiscourses.read(self.documents(), labeller)
        check(data)
        count = sum(len(document.sentences) for document in data.documents)
        size = f"{inputs.quantity(len(data.documents), 'document')}, {inputs.quantity(count, 'sentence')}"
        self.save(data, size, labeller)
        return data

    def train(
        self,
        data: tuple[TrainingDiscourses, CdvSources],
        family: DiscourseFamily,
        schedule: Schedule,
        progress: Progress,
    ) -> dict[str, float]:
        from capr.train.cdv import train

        discourses, sources = data
        return train(discourses, family.resolved(), schedule, self.output, sources, self.resume, progress)

    def summary(self, scores: dict[str, Any]) -> str:
        return f"{self.output}: {format_scores(scores)}"


def describing(files: list[str], labeller: Labeller) -> Iterator[tuple[Sequence[str], str]]:
    """Yield the names of the entity that a document describes with each sentence, except held-out ones."""
    for document in read(files) if files else ():
        names = labeller.named(document)
        if names:
            for span in sentences(document.text):
                if not labeller.is_held_out_text(document[span]):
                    yield names, document[span]

"""Queries and passages from documents, the training data of ranking families."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from capr.cli import inputs
from capr.cli.sources.documents import FromDocuments, format_scores

if TYPE_CHECKING:
    from capr.models.family import Schedule
    from capr.models.ranking import Ranking
    from capr.supervise.pairs import TrainingPairs
    from capr.train.loop import Progress


@dataclass(frozen=True, kw_only=True)
class PairSource(FromDocuments):
    """Documents that become passages with their queries."""

    file_name: ClassVar[str] = "training.pairs.gz"
    suffix: ClassVar[str] = ".pairs.gz"
    parallel: ClassVar[bool] = True

    def load(self, family: Ranking, schedule: Schedule, first: bool) -> TrainingPairs:
        """Return the training data, from a prepared file or from the documents.

        The family is checked before documents are read, which may take an hour. A run that cannot begin saves nothing.
        """
        from capr.annotate.vocabulary import Vocabulary
        from capr.supervise.labels import labelled
        from capr.supervise.pairs import TrainingPairs
        from capr.supervise.pool import Pool
        from capr.train.ranking import split

        if path := self.prepared_file(first):
            return TrainingPairs.load(path)
        family.check()
        vocabulary = Vocabulary.load(*self.vocabulary or ())
        labeller = self.labeller(vocabulary)
        with Pool(labelled(self.documents(), labeller)) as pool, inputs.progress("draws") as progress:
            data = TrainingPairs.from_pool(
                pool, vocabulary, schedule.seed, progress=progress, context=family.with_context
            )
        split(data, family, schedule)  # raises an error if the data are too few
        self.save(data, f"{inputs.quantity(len(data.passages), 'passage')}, {len(data.draws):,} queries", labeller)
        return data

    def train(self, data: TrainingPairs, family: Ranking, schedule: Schedule, progress: Progress) -> dict[str, float]:
        from capr.train.ranking import train

        return train(data, family, schedule, self.output, self.resume, progress)

    def summary(self, scores: dict[str, Any]) -> str:
        return f"{self.output}: {format_scores(scores)}"

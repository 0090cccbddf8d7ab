"""The settings, batches and validation of all families that learn to rank from pairs.

Each family builds a `RankingObjective`: a network with its inputs. An objective learns from batches of draws, scores
lists of candidates, and exports itself to a folder. It has two subclasses: `capr.models.two_sided` encodes queries and
passages separately, and `capr.models.pairwise` reads them together.
"""

from __future__ import annotations

import math
import random
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor, nn

from capr.documents import CaprError
from capr.models.family import Family, option
from capr.models.precision import autocast
from capr.models.writable import Writable
from capr.supervise.pairs import VIEWS, Draw, TrainingPairs

SHORT = (12, 25, 50)  # words
CandidateList = tuple[str, Sequence[int], set[int]]  # a query, its candidates, and the candidates that answer it
Views = tuple[tuple[str, float], ...]


def read_views(name: str, argument: str) -> Views:
    """Read `text=2,heading=1` as pairs of a view and its weight."""
    views = []
    for part in argument.split(","):
        view, equals, number = part.strip().partition("=")
        try:
            weight = float(number if equals else 1)
            if not 0 <= weight < math.inf:
                raise ValueError(number)
        except ValueError as error:
            raise CaprError(f"{name} {argument!r} is not a list of views. Fix: write text=2,heading=1.") from error
        if view not in VIEWS:
            raise CaprError(f"{name} does not accept {view!r}. Fix: use {' or '.join(VIEWS)}.")
        views.append((view, weight))
    if not any(weight > 0 for _, weight in views):
        raise CaprError(f"{name} {argument!r} leaves nothing to read. Fix: write text=2,heading=1.")
    return tuple(views)


@dataclass(frozen=True, kw_only=True)
class Ranking(Family):
    """The settings that are common to all families that learn from pairs.

    Attributes:
        negatives: number of hard negatives per query.
        views: the weights of the views (`capr.supervise.pairs.VIEWS`): a passage alone, or below its opening, heading
            or title.
        short: share of the batches that cut passages to their first words, because some sources have short passages.
        blend: share of the base's weights in the final weights. A blend preserves abilities of the base.
        false_negatives: whether the loss ignores negatives that may answer the query.
        validation: share of the documents to validate on.
        name: the name of the model.
        licence: the licence of the documents.
    """

    learns_from: ClassVar[str] = "pairs"
    kind: ClassVar[str]  # the name of the family in the model card

    negatives: int = option(3, "Hard negatives per query: passages that look like an answer.", least=0)
    views: Views = option(
        tuple((view, 1.0) for view in VIEWS),
        "Weights of the four views of a passage: text alone, or below the opening, heading or title.",
        parse=read_views,
        shown=",".join(f"{view}=1" for view in VIEWS),
    )
    short: float = option(0.25, "Share of batches that cut passages to 12, 25 or 50 words.", least=0, most=1)
    blend: float = option(0.0, "Share of the base's weights in the result: preserves its abilities.", least=0, most=1)
    false_negatives: bool = True
    validation: float = 0.05

    @abstractmethod
    def objective(self, pairs: TrainingPairs, device: str, limit: int = 0) -> RankingObjective:
        """Return the network with its inputs and its loss.

        Args:
            pairs: the training data.
            device: `cuda` or `cpu`.
            limit: number of word pieces that the network reads at once; 0 for a whole batch.

        Raises:
            CaprError: the base, the teacher or the word vectors cannot be used.
        """

    def check(self) -> None:
        """Check the folders that the settings name, before documents are read. Default: no check.

        Raises:
            CaprError: the base or the teacher cannot be used.
        """

    @property
    def with_context(self) -> bool:
        """Whether the network reads passages with the text around them."""
        return False

    def settings(self) -> dict[str, Any]:
        """Return the settings for the model card, with the names of folders instead of their paths."""
        return {name: _named(value) for name, value in vars(self).items()}

    def view(self, rng: random.Random) -> str:
        """Return a random view, perhaps followed by a number of words.

        All passages of a batch have the same view, because different views would reveal the answer.
        """
        names, weights = zip(*self.views, strict=True)
        name: str = rng.choices(names, weights)[0]
        return f"{name} {rng.choice(SHORT)}" if self.short and rng.random() < self.short else name


class RankingObjective(Writable):
    """A network with its inputs, its loss and its export.

    Attributes:
        model: the network.
        family: the settings of the network.
        pairs: the training data.
        device: the device of the network and of its inputs.
        limit: number of word pieces that the network reads at once; 0 for a whole batch.
    """

    model: nn.Module
    family: Ranking

    def __init__(self, pairs: TrainingPairs, device: str, limit: int = 0) -> None:
        self.pairs, self.device, self.limit = pairs, device, limit

    @abstractmethod
    def batch(self, draws: Sequence[Draw], rng: random.Random) -> Any:
        """Return the batch of a training step, on the device."""

    @abstractmethod
    def loss(self, batch: Any) -> Tensor:
        """Return the loss of a batch."""

    @abstractmethod
    def score_lists(self, pairs: TrainingPairs, lists: Sequence[CandidateList], view: str) -> list[list[float]]:
        """Return the scores of the candidates of each list."""

    @abstractmethod
    def load_export(self, folder: Path, suffix: str) -> nn.Module:
        """Return the exported networks as a module that can replace `model`."""

    def to(self, device: str) -> None:
        """Move the network and its future inputs to a device."""
        self.device = device
        self.model.to(device)

    @property
    def data(self) -> dict[str, int]:
        """Further counts of the training data for the model card, besides passages and queries."""
        return {}

    def texts(self, numbers: Sequence[int], view: str, pairs: TrainingPairs | None = None) -> list[str]:
        """Return the texts of passages in a view."""
        passages = (pairs or self.pairs).passages
        return [passages[number].view(view) for number in numbers]


def validation_scores(
    objective: RankingObjective, pairs: TrainingPairs, lists: Sequence[CandidateList], view: str = "text"
) -> dict[str, float]:
    """Return R@1 and R@5: the shares of queries with an answering passage first, and among the first five."""
    training = objective.model.training
    objective.model.eval()
    first = fifth = 0
    with autocast(objective.device):
        all_scores = objective.score_lists(pairs, lists, view)
    for (_, candidates, answers), scores in zip(lists, all_scores, strict=True):
        order = sorted(range(len(candidates)), key=lambda i: (-scores[i], candidates[i]))
        first += candidates[order[0]] in answers
        fifth += any(candidates[i] in answers for i in order[:5])
    objective.model.train(training)
    return {"R@1": first / max(1, len(lists)), "R@5": fifth / max(1, len(lists))}


def _named(value: Any) -> Any:
    """Return the name of a folder, and any other value unchanged."""
    return value.name if isinstance(value, Path) else value

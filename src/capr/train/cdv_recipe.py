"""Recipes of discourse models: `OURS` does best on development data, `PAPER` is what was published.

Reference: Arnold et al. (CDV), 2020, sections 4.4 and 5.2, and its released code.
"""

from __future__ import annotations

from dataclasses import dataclass

from capr.models.cdv import OURS as OUR_SIZES
from capr.models.cdv import PAPER as PAPER_SIZES
from capr.models.cdv import Sizes

LOSSES = ("softmax", "smoothed", "distance", "element")
SPACES = ("names", "codes", "encoder")


@dataclass(frozen=True)
class Recipe:
    """What to train, besides how long.

    Attributes:
        sizes: of the network.
        means: of a sentence's word vectors, which are its input: see `capr.index.subwords`.
        space: where queries lie: `names`, `codes` (the paper's) or `encoder`.
        dimensions: of the space of names.
        sketched: how much of an entity, in that space, is which words it has; if sentences are read so, too.
        word_dimensions: of the word vectors that are trained.
        loss: `softmax` over all labels, `smoothed` (equation 17), `distance` (equation 12) or `element` (the code's).
        temperature: of the softmax.
        weights: how much the entity and the aspect of a query count.
        balanced: whether frequent aspects, and entities that are only mentioned, count less (the code's option).
        dropout: share of the input left out.
        decay: of the weights.
        falling: factor of the learning rate after each epoch; 0 for a straight line to 0.
        sentences: of a document that are read in training, at most.
        words: of a sentence that are read in training, at most.
        dense: whether the space of codes ends in a dense layer (the code) or in the mean of end states (equation 4).
        validation: share of the documents to validate on.
        name: of the model.
        licence: of the documents.
    """

    sizes: Sizes = OUR_SIZES
    means: tuple[str, ...] = ("weighted", "mean", "sketch")
    space: str = "names"
    dimensions: int = 192
    sketched: float = 0.75
    word_dimensions: int = 300
    loss: str = "softmax"
    temperature: float = 0.1
    weights: tuple[float, float] = (1.3, 0.7)
    balanced: bool = False
    dropout: float = 0.2
    decay: float = 0.01
    falling: float = 0.0
    sentences: int = 396
    words: int = 96
    dense: bool = True
    validation: float = 0.05
    name: str = ""
    licence: str = ""


OURS = Recipe()
PAPER = Recipe(
    sizes=PAPER_SIZES, means=("mean",), space="codes", dimensions=128, word_dimensions=128, loss="smoothed",
    weights=(1.0, 1.0), dropout=0.0, decay=1e-4, falling=0.975,
)  # fmt: skip

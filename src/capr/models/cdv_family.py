"""The family of discourse models and its recipes: `OURS` is best on development data, `PAPER` follows the publication.

Reference: Arnold et al. (CDV), 2020, sections 4.4 and 5.2, and its released code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from capr.documents import CaprError
from capr.models.cdv import CODE as CODE_SIZES
from capr.models.cdv import NETWORKS, Sizes
from capr.models.cdv import OURS as OUR_SIZES
from capr.models.cdv import PAPER as PAPER_SIZES
from capr.models.family import Family, Offered, Schedule, option

LOSSES = ("softmax", "smoothed", "distance", "element")
SPACES = ("names", "codes", "encoder")
EMBEDDINGS = ("dense", "ends")


@dataclass(frozen=True)
class Recipe:
    """All settings of a discourse model except the schedule.

    Attributes:
        sizes: the architecture and sizes of the network.
        means: the means of a sentence's word vectors that the network reads: see `capr.runtime.subwords`.
        space: the query space: `names`, `codes` (the paper's) or `encoder`.
        dimensions: dimensions of the space of names.
        sketched: weight of the sketch of words in the vectors of that space, if the network also reads sketches.
        word_dimensions: dimensions of trained word vectors.
        loss: `softmax` over all labels, `smoothed` (equation 17), `distance` (equation 12) or `element` (the code's).
        temperature: temperature of the softmax.
        weights: weights of the entity and of the aspect of a query.
        balanced: whether frequent aspects and entities that are only mentioned have less weight (the code's option).
        dropout: share of the input that training drops.
        decay: weight decay.
        falling: factor of the learning rate after each epoch; 0 for a linear decay to 0.
        sentences: maximum number of sentences of a document in training.
        words: maximum number of words of a sentence in training.
        dense: whether the space of codes ends in a dense layer (the code) or in the mean of end states (equation 4).
        validation: share of the documents to validate on.
        name: the name of the model.
        licence: the licence of the documents.
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
    sizes=PAPER_SIZES,
    means=("mean",),
    space="codes",
    dimensions=128,
    word_dimensions=128,
    loss="smoothed",
    weights=(1.0, 1.0),
    dropout=0.0,
    decay=1e-4,
    falling=0.975,
)
CODE = replace(PAPER, sizes=CODE_SIZES, loss="element", means=("unit",))
RECIPES = {"ours": OURS, "paper": PAPER, "code": CODE}
TUNING_RATE, TUNED = 2e-5, 4  # the second stage: learning rate, and documents per step


@dataclass(frozen=True, kw_only=True)
class DiscourseFamily(Family):
    """Train a discourse model (CDV) from documents: it encodes each sentence in the context of the whole document.

    Entities are titles, links and mentions, aspects are headings, as in capr train bi. A twentieth of the documents is
    for validation. After an interruption, repeat the command with --resume. Needs the extra `train`.

    Example: capr train cdv articles.jsonl -o cdv
    """

    # The fields are the options of the command; `resolved` returns all settings as a `Recipe`.

    learns_from: ClassVar[str] = "discourses"
    schedule: ClassVar[Schedule] = Schedule(epochs=12, batch=8, learning_rate=1e-3)
    offered: ClassVar[Offered] = {
        "epochs": {"help": "Default: 12; 50 for paper and code.", "shown": None},
        "batch": {
            "help": "Documents per step. Default: 8; 16 for paper and code.",
            "least": 1,
            "shown": None,
        },
        "learning_rate": {},
        "patience": {},
        "seed": {},
        "device": {},
        "max_pieces_per_pass": {},
    }

    recipe: str = option(
        "ours", "ours, paper (as published) or code (the sizes and loss of its code).", choices=tuple(RECIPES)
    )
    network: str = option("blstm", "The network over sentences: blstm or transformer.", choices=NETWORKS)
    base: str = option("", "An encoder that reads the sentences, instead of word vectors.", metavar="MODEL")
    tune: int = option(0, "Epochs of a second stage that also trains the base.", least=0)
    space: str = option("", "The query space: names, codes (the paper's) or encoder.", choices=("", *SPACES))
    queries: str = option(
        "", "The encoder of --space encoder. Default: the base.", name="--query-encoder", metavar="FOLDER"
    )
    embedding: str = option(
        "", "The output of --space codes: dense (a layer) or ends (mean of end states).", choices=("", *EMBEDDINGS)
    )
    loss: str = option("", "softmax, smoothed, distance or element. Default: as in --recipe.", choices=("", *LOSSES))
    balanced: bool = option(
        False, "Give less weight to frequent aspects, and to entities that are only mentioned.", name="--balanced"
    )

    def resolved(self) -> Recipe:
        """Return the recipe with the settings that the user chose."""
        recipe = RECIPES[self.recipe]
        changes = {name: value for name in ("space", "loss") if (value := getattr(self, name))}
        if self.embedding:
            changes["dense"] = self.embedding == "dense"
        return replace(
            recipe,
            sizes=replace(recipe.sizes, over=self.network),
            balanced=self.balanced,
            name=self.name,
            licence=self.licence,
            **changes,
        )

    def scheduled(self, fields: Mapping[str, Any]) -> Schedule:
        defaults = {} if self.recipe == "ours" else {"epochs": 50, "batch": 16}
        return super().scheduled(defaults | dict(fields))

    def tuning(self, schedule: Schedule) -> Schedule | None:
        """Return the schedule of the second stage, which also trains the base; None without such a stage."""
        if not self.tune:
            return None
        return replace(schedule, epochs=self.tune, learning_rate=TUNING_RATE, batch=min(schedule.batch, TUNED))

    def check(self, vectors: bool, descriptions: bool) -> None:
        """Check that the settings are compatible, and that the model would use the vectors or descriptions.

        Args:
            vectors: whether the user named word vectors.
            descriptions: whether the user named descriptions.

        Raises:
            CaprError: they are not.
        """
        space = self.resolved().space
        if self.tune and not self.base:
            raise CaprError("--tune trains the base, but there is none. Fix: name one with --base.")
        if descriptions and space != "codes":
            fact = f"--descriptions are for --space codes, and the space is {space}"
            raise CaprError(f"{fact}. Fix: add --space codes, or leave them out.")
        if self.embedding and space != "codes":
            fact = f"--embedding is for --space codes, and the space is {space}"
            raise CaprError(f"{fact}. Fix: add --space codes, or leave it out.")
        if self.queries and space != "encoder":
            fact = f"--query-encoder is for --space encoder, and the space is {space}"
            raise CaprError(f"{fact}. Fix: add --space encoder, or leave it out.")
        if vectors and self.base and space == "encoder":
            fact = "--vectors are word vectors, which a model with --base and --space encoder does not read"
            raise CaprError(f"{fact}. Fix: leave them out, or use --space names.")

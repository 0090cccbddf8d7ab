"""The family of taggers: a transformer, or letter trigrams and a BLSTM (TASTY)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from capr.documents import CaprError
from capr.models.family import Family, Offered, Schedule, option

TASTY_RATE = 1e-3  # the best learning rate of TASTY


@dataclass(frozen=True, kw_only=True)
class TaggerFamily(Family):
    """Train a tagger from annotated corpora, and export it to ONNX with weights in 8 bits.

    The tagger labels by the guideline of the first corpus. After an interruption, repeat the command: it continues from
    the last checkpoint. Needs the extra `train`.

    Example: capr train tagger BC5CDR NCBI-disease --base bge-small --texts articles/ -o tagger

    Attributes:
        architecture: `transformer` or `tasty`.
        base: the folder of a Hugging Face encoder, for a transformer.
        layers: number of layers of the encoder to keep; 0 for all.
        distil: whether an encoder with all layers teaches the one with fewer layers.
        adapt_steps: steps of masked-language-model training, if there are texts of the domain.
        devel: whether to train on devel.tsv as well.
        pieces: maximum number of word pieces of a window.
        average: decay of the running average of the weights. The trained model has the average.

    The built-in tagger has the default settings.
    """

    learns_from: ClassVar[str] = "corpora"
    schedule: ClassVar[Schedule] = Schedule(epochs=20, batch=32, learning_rate=2e-4, patience=0)
    offered: ClassVar[Offered] = {
        "epochs": {"help": ""},
        "batch": {"help": "Windows per step.", "least": 1},
        "learning_rate": {"help": "Default: 2e-4 for a transformer, 1e-3 for TASTY.", "shown": None},
        "seed": {"help": ""},
    }

    architecture: str = option(
        "transformer", "A transformer, or letter trigrams and a BLSTM (TASTY).", choices=("transformer", "tasty")
    )
    base: str = option("", "The folder of a Hugging Face encoder to start from.", metavar="MODEL")
    adapt_steps: int = option(3000, "Steps that adapt the encoder to --texts.", least=0)
    layers: int = option(6, "Layers of the encoder to keep; 0 for all.", least=0)
    distil: bool = option(True, "Let the full encoder teach the one with fewer layers.", name="--distil/--no-distil")
    devel: bool = option(True, "Train on devel.tsv as well.", name="--devel/--no-devel")
    licence: str = ""
    pieces: int = 192
    average: float = 0.99

    def scheduled(self, fields: Mapping[str, Any]) -> Schedule:
        rate = {"learning_rate": TASTY_RATE} if self.architecture == "tasty" else {}
        return super().scheduled(rate | dict(fields))

    def check(self, texts: bool) -> None:
        """Check that the settings are compatible.

        Args:
            texts: whether the user named texts of the domain.

        Raises:
            CaprError: they are not.
        """
        if self.architecture == "tasty" and (self.base or texts):
            raise CaprError("TASTY trains from scratch. Fix: leave out --base and --texts.")
        if self.architecture != "tasty" and not self.base:
            fix = "name the folder of an encoder with --base, or use --architecture tasty"
            raise CaprError(f"a transformer starts from a pretrained encoder. Fix: {fix}.")

    def settings(self) -> dict[str, Any]:
        """Return the settings that determine the weights, except the base and the schedule."""
        names = ("layers", "distil", "adapt_steps", "pieces", "average", "devel")
        return {name: getattr(self, name) for name in names}

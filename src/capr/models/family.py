"""The base class of model families, and their options and schedule.

All families share one command, one training loop and one export. A family is a frozen dataclass whose fields are its
settings. Fields defined with `option` become options of `capr train NAME`. Subclasses add what their training data
needs: see `capr.models.ranking` for families that learn from pairs of queries and passages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, replace
from typing import Any, ClassVar


def option(
    default: Any = MISSING,
    help: str = "",
    *,
    name: str = "",
    least: float | None = None,
    most: float | None = None,
    metavar: str = "",
    choices: tuple[str, ...] = (),
    parse: Callable[[str, Any], Any] | None = None,
    shown: Any = MISSING,
) -> Any:
    """Return a dataclass field that is also an option of the command.

    Args:
        default: the default of the field. Without a default, the option is required.
        help: one line for the user.
        name: the name of the option. Default: `--` and the name of the field. A switch has two names, separated by /.
        least: the minimum of a number.
        most: the maximum of a number.
        metavar: the placeholder for the value in the help.
        choices: the allowed values of a text.
        parse: a function that converts the argument. It takes the name of the option, for error messages, and the
            argument.
        shown: the default as a user would write it, if there is `parse`.
    """
    metadata = {
        "help": help,
        "name": name,
        "least": least,
        "most": most,
        "metavar": metavar,
        "choices": choices,
        "parse": parse,
        "shown": shown,
    }
    return field(default=default, metadata=metadata)


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


@dataclass(frozen=True)
class Schedule:
    """The length and the learning rate of a training run.

    Attributes:
        epochs: number of times each passage is drawn.
        batch: number of queries per step.
        learning_rate: the highest learning rate.
        warmup: share of the steps in which the learning rate rises.
        patience: number of validations without improvement that end the training; 0 for no early stopping.
        validations: number of validations per epoch. Each one writes a checkpoint.
        seed: the seed of all random choices.
        device: `cuda` or `cpu`.
        max_pieces_per_pass: number of word pieces that an encoder reads at once; 0 for a whole batch. A small number
            takes less memory and a third more time. The trained weights are the same: see `capr.models.memory`.
    """

    epochs: int = option(5, "How often each passage is drawn.", least=1)
    batch: int = option(64, "Queries in a step.", least=2)
    learning_rate: float = option(4e-5)
    warmup: float = 0.1
    patience: int = option(3, "Validations without improvement to stop after.", least=0)
    validations: int = 1
    seed: int = option(1, "The same seed trains the same model.")
    device: str = field(
        default_factory=_device,
        metadata={"help": "cuda or cpu. Default: cuda if available.", "choices": ("cuda", "cpu"), "shown": None},
    )
    max_pieces_per_pass: int | None = option(
        None,
        "Word pieces read at once, 0 for a whole batch: fewer take less memory. Default: 2,048 on a CPU, 0 on a GPU.",
        least=0,
    )

    @property
    def limit(self) -> int:
        """The number of word pieces that are read at once; 0 for no limit."""
        if self.max_pieces_per_pass is not None:
            return self.max_pieces_per_pass
        return 2048 if self.device == "cpu" else 0


Offered = Mapping[str, Mapping[str, Any]]  # field of the schedule to the arguments of `option` that a family overrides


@dataclass(frozen=True, kw_only=True)
class Family:
    """The settings of a family. Each family is a subclass.

    The docstring of a family is the help of its command and includes an example.

    Attributes:
        learns_from: the name of a source of training data in `capr.cli.sources`.
        schedule: the default schedule.
        offered: the fields of the schedule that the command has as options, with any help text that differs.
        name: the name of the model.
        licence: the licence of the documents.
    """

    learns_from: ClassVar[str]
    schedule: ClassVar[Schedule]
    offered: ClassVar[Offered] = {
        name: {} for name in ("epochs", "batch", "learning_rate", "patience", "seed", "device", "max_pieces_per_pass")
    }

    name: str = ""
    licence: str = option("", "The licence of the documents, for the model card.")

    def scheduled(self, fields: Mapping[str, Any]) -> Schedule:
        """Return the schedule of the family, with the fields that the user chose."""
        return replace(self.schedule, **{"device": _device(), **fields})

"""The model of a grain: the one that was given, or the one that the library remembers."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from capr.documents import CaprError
from capr.index import Grain, Index
from capr.index.protocol import EncoderIdentity

NONE = "none"
WEIGHTS = "CAPR_WEIGHTS"  # names a folder with models that take the place of those that ship
SHIPPED = "capr"  # remembered instead of a folder, which lies elsewhere on every machine
NAMES = {Grain.PASSAGES: "encoder", Grain.SENTENCES: "discourse"}  # of options and of folders


class Identified(Protocol):
    """A model that can be told from others."""

    identity: EncoderIdentity


Model = TypeVar("Model", bound=Identified)


class Choice(Generic[Model]):
    """Loads the model of a grain when it is needed.

    Args:
        folder: of the library, for messages.
        grain: whose vectors it makes.
        given: by the user: a folder, a model, "none", or None.
        load: makes the model of what is given or remembered.
    """

    def __init__(
        self,
        folder: Path,
        grain: Grain,
        given: Model | str | os.PathLike[str] | None,
        load: Callable[[Model | str | os.PathLike[str] | None], Model | None],
    ) -> None:
        self._folder, self._grain, self.given, self._load = folder, grain, given, load
        self._model: Model | None = None

    def take(self, given: Model | str | os.PathLike[str]) -> None:
        """Uses another one from now on, and leaves it to the library to remember it."""
        self._model = self._load(given)

    def check(self) -> None:
        """Loads what was given, which complains if that is no model; before anything is changed for it."""
        if self._model is None and self.given is not None and self.given != NONE:
            self._model = self._load(self.given)

    def model(self, index: Index) -> Model | None:
        """The model that was given, or that the library remembers; None if there is none."""
        known = index.encoder(self._grain)
        changed = self.given is None and self._model and known and known.digest != self._model.identity.digest
        if self._model is None or changed:
            given = self.given
            if given is None and known is not None:
                given, name = known.folder, NAMES[self._grain]
                place = shipped(name) if given == SHIPPED else Path(given)
                if not place.is_dir():
                    fix = f"put it back, or say where it is with --{name}"
                    fact = f"the {name} {known.name} of {self._folder} is not in {place} any more"
                    raise CaprError(f"{fact}. Fix: {fix}.")
            self._model = None if given == NONE else self._load(given)
        return self._model

    def fitting(self, index: Index) -> Model | None:
        """The model, if it is the one that made the vectors that are there; None if there is none."""
        model, known = self.model(index), index.encoder(self._grain)
        if model is not None and known is not None and known.digest != model.identity.digest:
            fact = f"the vectors of {self._folder} were made by {known.name} ({known.digest[:8]})"
            other = f"{model.identity.name} ({model.identity.digest[:8]})"
            named = f" --{NAMES[self._grain]} {model.identity.folder}"
            fix = f"capr encode {self._folder}{'' if model.identity.folder == SHIPPED else named}"
            raise CaprError(f"{fact}, and {other} cannot be used with them. Fix: {fix}, which makes them again.")
        return model


def shipped(kind: str) -> Path:
    """The folder of the `encoder`, the `ranker` or the `reader` that ships, or that takes its place."""
    instead = os.environ.get(WEIGHTS)
    return (Path(instead) if instead else Path(str(files("capr").joinpath("weights")))) / kind

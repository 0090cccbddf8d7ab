"""The model of a vector space: the user's choice, or the model that the library remembers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from capr.documents import CaprError
from capr.index import Index, Space
from capr.runtime.identity import EncoderIdentity
from capr.runtime.shipped import SHIPPED, shipped

NONE = "none"


class Identified(Protocol):
    """A model with an identity."""

    identity: EncoderIdentity


Model = TypeVar("Model", bound=Identified)


class ModelSlot(Generic[Model]):
    """Loads the model of a space on first use.

    Args:
        folder: the folder or the address of the library, for messages.
        space: the space of the model's vectors.
        choice: the user's choice: a folder, a model, "none", or None.
        load: loads the model of the user's choice, or of a folder that the library remembers.
    """

    def __init__(
        self,
        folder: str | Path,
        space: Space,
        choice: Model | str | os.PathLike[str] | None,
        load: Callable[[Model | str | os.PathLike[str] | None], Model | None],
    ) -> None:
        self._folder, self._space, self.choice, self._load = folder, space, choice, load
        self._model: Model | None = None

    def use(self, model: Model | str | os.PathLike[str]) -> None:
        """Use another model from now on, until the library remembers one."""
        self._model = self._load(model)

    def check(self) -> None:
        """Load the model that the user named, so that an invalid one fails before the library changes."""
        if self._model is None and self.choice is not None and self.choice != NONE:
            self._model = self._load(self.choice)

    def model(self, index: Index) -> Model | None:
        """Return the model that the user named or that the library remembers; None if there is none."""
        identity = index.encoder(self._space)
        is_outdated = (
            self.choice is None and self._model and identity and identity.digest != self._model.identity.digest
        )
        if self._model is None or is_outdated:
            choice = self.choice
            if choice is None and identity is not None:
                choice, role = identity.folder, self._space.model
                folder = shipped(role) if choice == SHIPPED else Path(choice)
                if not folder.is_dir():
                    fix = f"put it back, or say where it is with --{role}"
                    fact = f"the {role} {identity.name} of {self._folder} is not in {folder} any more"
                    raise CaprError(f"{fact}. Fix: {fix}.")
            self._model = None if choice == NONE else self._load(choice)
        return self._model

    def fitting(self, index: Index) -> Model | None:
        """Return the model, or None if there is none; raise `CaprError` if another model made the vectors."""
        model, identity = self.model(index), index.encoder(self._space)
        if model is not None and identity is not None and identity.digest != model.identity.digest:
            fact = f"the vectors of {self._folder} were made by {identity.name} ({identity.digest[:8]})"
            other = f"{model.identity.name} ({model.identity.digest[:8]})"
            option = f" --{self._space.model} {model.identity.folder}"
            fix = f"capr encode {self._folder}{'' if model.identity.folder == SHIPPED else option}"
            raise CaprError(f"{fact}, and {other} cannot be used with them. Fix: {fix}, which replaces them.")
        return model

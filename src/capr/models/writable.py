"""Models that can be written to a folder, with the facts and the files that the runtime needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Writable(ABC):
    """A model, with the methods that write it to a folder."""

    @abstractmethod
    def save_weights(self, folder: Path) -> None:
        """Write the torch weights to a new folder, for further training or for a teacher. Some models write nothing."""

    @abstractmethod
    def manifest(self) -> Mapping[str, Any]:
        """Return the manifest: the facts that a program needs to run the model."""

    @abstractmethod
    def export(self, folder: Path) -> None:
        """Write the networks as ONNX, with the files that prepare their inputs."""

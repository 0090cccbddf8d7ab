"""Stages of training on disk, so that an interrupted run continues after the last finished stage."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn


class Stages:
    """The weights of finished stages. A stage that finished with the same settings and data is not repeated.

    The folder also has the checkpoint of the running stage.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any], *data: object) -> None:
        self.folder = folder
        self.settings = {**settings, "data": hashlib.sha256(repr(data).encode()).hexdigest()}

    def run(self, stage: str, model: nn.Module, make: Callable[[Any, Path], nn.Module]) -> nn.Module:
        """Return the model after a stage. Load its weights if the stage is finished, or else run the stage.

        Args:
            stage: the name of the stage.
            model: the model before the stage.
            make: a function that trains the model, with a folder for its checkpoints.
        """
        path = self.folder / f"{stage}.pt"
        if path.is_file():
            state = torch.load(path, map_location="cpu", weights_only=True)
            if state["settings"] == self.settings:
                model.load_state_dict(state["weights"])
                return model.eval()
        running = self.folder / f"{stage}-{hashlib.sha256(repr(self.settings).encode()).hexdigest()[:12]}"
        trained = make(model, running)
        shutil.rmtree(running, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        torch.save({"settings": self.settings, "weights": trained.state_dict()}, part)
        part.replace(path)
        return trained.eval()

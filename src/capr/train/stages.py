"""Stages of training, kept on disk, so that an interrupted run goes on after the last one that was finished."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn


class Stages:
    """Weights kept between runs: a stage that was finished with the same settings and data is not repeated."""

    def __init__(self, folder: Path, settings: Mapping[str, Any], *learned_from: object) -> None:
        self.folder = folder
        self.settings = {**settings, "data": hashlib.sha256(repr(learned_from).encode()).hexdigest()}

    def run(self, stage: str, model: nn.Module, make: Callable[[Any], nn.Module]) -> nn.Module:
        """The model after the stage: as it was kept, or made now and kept."""
        path = self.folder / f"{stage}.pt"
        if path.is_file():
            kept = torch.load(path, map_location="cpu", weights_only=True)
            if kept["settings"] == self.settings:
                model.load_state_dict(kept["weights"])
                return model.eval()
        made = make(model)
        self.folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        torch.save({"settings": self.settings, "weights": made.state_dict()}, part)
        part.replace(path)
        return made.eval()

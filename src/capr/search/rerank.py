"""Re-ranking: a model that reads query and passage together puts the best candidates in order."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from capr.documents import CaprError
from capr.index.onnx import OnnxModel


class Ranker(Protocol):
    """Query and passages to scores, the higher the better."""

    def scores(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        """One for each passage."""


class OnnxRanker:
    """The ranker of a folder (see `capr.index.onnx`): a cross-encoder with one output."""

    def __init__(self, folder: str | os.PathLike[str], threads: int = 0) -> None:
        self._model = OnnxModel(Path(folder), "ranker", threads)
        outputs = self._model.run([("a", "b")]).shape[1]
        if outputs != 1:
            fact = f"its model gives {outputs} numbers for a pair of texts"
            raise CaprError(f"{folder} is no ranker: {fact}. Fix: export a cross-encoder with one output.")

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        if not passages:
            return []
        found = self._model.run([(query, passage) for passage in passages], batch=16)
        return [float(score) for score in found[:, 0]]

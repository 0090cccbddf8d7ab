"""The start and the end of every training: save the weights, export and check the network, describe the model.

A model that is trained is a `TrainedModel`; `finish` writes it to its folder with its manifest and its model card.
"""

from __future__ import annotations

import json
import shutil
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from capr.documents import CaprError
from capr.models.bases import KEPT
from capr.models.writable import Writable
from capr.train import card
from capr.train.loop import CHECKPOINT
from capr.train.parallel import rank, wait_for_all

EXPORTED = ("model.onnx", "manifest.json")  # files that every exported model has
RUNTIME_FILES = ("tokenizer.json", "config.json")  # files of the torch weights that the exported model also needs


@dataclass(frozen=True)
class CardFacts:
    """The facts for a model card.

    Attributes:
        name: the name of the model.
        kind: the kind of model, in words.
        data: counts of the training data.
        licence: the licence of the training data.
        settings: the settings of the training.
        scores: the scores on the validation split.
    """

    name: str
    kind: str
    data: Mapping[str, Any]
    licence: str
    settings: Mapping[str, Any]
    scores: Mapping[str, float]


class TrainedModel(Writable):
    """A trained model, with the check of its export."""

    @abstractmethod
    def check(self, folder: Path) -> dict[str, float]:
        """Compare the exported networks with torch, and return the scores of the comparison.

        Raises:
            CaprError: they do not agree.
        """


class TrainedObjective(TrainedModel):
    """The product of an objective that can write itself."""

    def __init__(self, objective: Writable) -> None:
        self.objective = objective

    def save_weights(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.objective.save_weights(folder)

    def manifest(self) -> Mapping[str, Any]:
        return self.objective.manifest()

    def export(self, folder: Path) -> None:
        self.objective.export(folder)


def too_few(
    train: str,
    held: str,
    fix: str = "name more documents that have headings and entities (capr supervise shows what they have)",
) -> CaprError:
    """Return the error of a training that has too little to learn from, or nothing to validate with."""
    fact = f"there are {train} to train on and {held} to validate with"
    return CaprError(f"{fact}, which is too few. Fix: {fix}.")


def check_unfinished(folder: Path, resume: bool = False) -> None:
    """Check that the output folder has no finished model, which a new run would replace.

    It must not have the checkpoint of an unfinished run either.

    Args:
        folder: the output folder.
        resume: whether a run is resumed. It may replace its own model.

    Raises:
        CaprError: there is a finished model, or a checkpoint.
    """
    if resume:
        return
    if is_finished(folder):
        raise CaprError(f"{folder} has a finished model already. Fix: name another folder with -o, or remove it.")
    if (checkpoint := folder / CHECKPOINT).is_file():
        fix = f"continue with --resume, name another folder with -o, or delete {checkpoint}"
        raise CaprError(f"{folder} has the checkpoint of an unfinished training. Fix: {fix}.")


def is_finished(folder: Path) -> bool:
    """Return whether a folder has a finished model. While it is exported and checked, the checkpoint is still there."""
    is_exported = all((folder / name).is_file() for name in EXPORTED)
    return (folder / card.FACTS).is_file() or (is_exported and not (folder / CHECKPOINT).is_file())


def begin(folder: Path, resume: bool, *more: str) -> None:
    """Create the folder. Unless a run is resumed, delete what an unfinished model left in it.

    Args:
        folder: the output folder.
        resume: whether a run is resumed.
        more: patterns of further files to delete.

    Raises:
        CaprError: the folder has a finished model or a checkpoint, and no run is resumed.
    """
    check_unfinished(folder, resume)
    folder.mkdir(parents=True, exist_ok=True)
    if not resume and not rank():  # only the first process, before any of them writes
        for pattern in ("*.onnx", *more):
            for old in folder.glob(pattern):
                old.unlink(missing_ok=True)
    wait_for_all()


def finish(
    product: TrainedModel, folder: Path, facts: CardFacts, onnx: bool = True, done: Sequence[Path] = ()
) -> dict[str, float]:
    """Write the model to a folder, and return its scores and the scores of its export.

    Args:
        product: the trained model.
        folder: the output folder.
        facts: the facts for the model card.
        onnx: whether to export the model. A base for further training, or a teacher, needs no export.
        done: files and folders for resuming the run, to delete now.

    Raises:
        CaprError: the exported network is not the trained one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    weights = folder / KEPT
    shutil.rmtree(weights, ignore_errors=True)
    product.save_weights(weights)
    for name in RUNTIME_FILES:
        if (weights / name).is_file():
            shutil.copy(weights / name, folder / name)
    scores = dict(facts.scores)
    write_manifest(product, folder, facts.name)
    if onnx:
        product.export(folder)
        scores |= product.check(folder)
        write_manifest(product, folder, facts.name)  # again, because the check may have calibrated the model
    card.write(folder, facts.name, facts.kind, facts.data, facts.licence, facts.settings, scores)
    for path in (folder / CHECKPOINT, *done):
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
    return scores


def check_close(actual: Tensor, expected: Tensor, limit: float) -> None:
    """Compare the output of an exported network with that of torch.

    Raises:
        CaprError: a value differs by more than the limit.
    """
    difference = float(np.abs(actual.numpy() - expected.numpy()).max(initial=0))
    if difference > limit:
        fact = f"the exported network differs from torch by {difference:.2g}"
        raise CaprError(f"{fact}. Fix: report it with the versions of torch and onnxruntime.")


def check_share(same: float, difference: str, folder: Path) -> None:
    """Check that an exported network decides like torch in nearly all cases.

    Args:
        same: the share of cases in which both decide the same.
        difference: what the exported model does in the other cases, with `{}` for their share.
        folder: the folder of the model.

    Raises:
        CaprError: they differ in more than a twentieth of the cases.
    """
    if 1 - same > 0.05:
        fact = f"the exported {difference.format(f'{1 - same:.0%}')}"
        raise CaprError(f"{fact}. Fix: report it with the base's name; the torch weights are in {folder / KEPT}.")


def write_manifest(product: TrainedModel, folder: Path, name: str) -> None:
    """Write the manifest of a model."""
    manifest = {"name": name, **product.manifest()}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")

"""The kinds of models: the role of each, and the class that runs it.

To add a kind, write a file with its manifest and a class that runs a folder, and add a line to `KINDS`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capr import registry
from capr.documents import CaprError
from capr.runtime.manifest import FILE, Manifest, lacking, read_json, with_article

FIX = "name the folder of a model that capr train has made, or one with model.onnx and a manifest.json"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of model.

    Attributes:
        role: the task: `encoder` (texts to vectors), `ranker` (query and passages to scores), `reader` (question and
            paragraphs to answers), `discourse` (documents to vectors of their sentences) or `tagger`.
        source: the class that runs a folder, as `module:Class`; its `read_manifest` reads the manifest.
    """

    role: str
    source: str

    @property
    def runner(self) -> Any:
        """The class that runs the model."""
        return registry.load(self.source)


KINDS: Mapping[str, Kind] = {
    "encoder": Kind("encoder", "capr.runtime.encoder:OnnxEncoder"),
    "ranker": Kind("ranker", "capr.runtime.ranker:OnnxRanker"),
    "poly": Kind("ranker", "capr.runtime.poly:OnnxPoly"),
    "reader": Kind("reader", "capr.runtime.reader:OnnxReader"),
    "cdv": Kind("discourse", "capr.runtime.discourse:OnnxDiscourse"),
    "tagger": Kind("tagger", "capr.runtime.tagger:Tagger"),
}


def kind_of(folder: str | os.PathLike[str], role: str = "") -> Kind:
    """Return the kind of the model in a folder.

    Args:
        folder: the folder of the model.
        role: the required role; empty for any.

    Raises:
        CaprError: the folder has no model, or a model with another role.
    """
    folder = Path(folder)
    if not (folder / FILE).is_file():
        raise lacking(folder, role or "model", FILE, FIX)
    record = read_json(folder, FIX)
    name = record.get("kind", "tagger" if "architecture" in record else "encoder")  # old manifests name no kind
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise CaprError(f"{folder / FILE} has kind {name!r}. Fix: use {', '.join(KINDS)}.")
    if role and kind.role != role:
        fix = f"name the folder of {with_article(role)}"
        raise CaprError(f"{folder / FILE} has kind {name!r}, which is not {with_article(role)}. Fix: {fix}.")
    return kind


def load_model(folder: str | os.PathLike[str], role: str = "", **options: Any) -> Any:
    """Load the model of a folder, whatever its kind.

    Args:
        folder: the folder of the model.
        role: the required role; empty for any.
        options: options of the class that runs the model, such as `threads`.

    Raises:
        CaprError: the folder has no such model.
    """
    return kind_of(folder, role).runner(folder, **options)


def read_manifest(folder: str | os.PathLike[str], role: str = "", **options: Any) -> Manifest:
    """Return the manifest of a folder, whatever the kind of its model."""
    manifest: Manifest = kind_of(folder, role).runner.read_manifest(Path(folder), **options)
    return manifest

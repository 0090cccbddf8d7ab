"""The models of a library: those that were given, or that it remembers."""

from __future__ import annotations

import os
from functools import cached_property
from importlib.resources import files
from pathlib import Path

from capr.documents import CaprError
from capr.index import Encoder, Index, OnnxEncoder
from capr.index.onnx import any_manifest
from capr.search.rerank import OnnxPoly, OnnxRanker, Ranker


class Models:
    """Loads models when they are needed.

    Args:
        folder: of the library, for messages.
        encoder: given by the user: a folder or an `Encoder`.
        ranker: given by the user: a folder or a `Ranker`.
    """

    def __init__(
        self,
        folder: Path,
        encoder: Encoder | str | os.PathLike[str] | None,
        ranker: Ranker | str | os.PathLike[str] | None,
    ) -> None:
        self._folder, self._given, self._given_ranker = folder, encoder, ranker
        self._encoder: Encoder | None = None

    @cached_property
    def ranker(self) -> Ranker | None:
        """The ranker, if one was given."""
        given = self._given_ranker
        return load_ranker(given) if isinstance(given, str | os.PathLike) else given

    def encoder(self, index: Index) -> Encoder | None:
        """The encoder that was given, or the one that the library remembers; None if there is none."""
        known = index.encoder()
        changed = self._given is None and self._encoder and known and known.digest != self._encoder.identity.digest
        if self._encoder is None or changed:
            given = self._given
            if given is None and known is not None:
                given = known.folder
                if not Path(given).is_dir():
                    fix = "put it back, or say where it is with --encoder"
                    fact = f"the encoder {known.name} of {self._folder} is not in {given} any more"
                    raise CaprError(f"{fact}. Fix: {fix}.")
            self._encoder = OnnxEncoder(given) if isinstance(given, str | os.PathLike) else given
        return self._encoder

    def to_add(self, index: Index) -> Encoder | None:
        """The encoder, if it is the one that made the vectors that are there; None if there is none."""
        encoder, known = self.encoder(index), index.encoder()
        if encoder is not None and known is not None and known.digest != encoder.identity.digest:
            fact = f"the vectors of {self._folder} were made by {known.name} ({known.digest[:8]})"
            other = f"{encoder.identity.name} ({encoder.identity.digest[:8]})"
            fix = f"capr encode {self._folder} --encoder {encoder.identity.folder}, which makes them again"
            raise CaprError(f"{fact}, and {other} cannot be used with them. Fix: {fix}.")
        return encoder

    def to_search(self, index: Index, mode: str, notices: list[str]) -> Encoder | None:
        """The encoder for a query; where there is none, hybrid search goes without, and tells it."""
        if mode == "lexical":
            return None
        try:
            encoder = self.to_add(index)
            if encoder is not None and index.encoder() is not None:
                return encoder
            fact = f"the library has no vectors. Fix: capr encode {self._folder} --encoder FOLDER."
        except CaprError as error:
            fact = str(error)
        if mode == "dense":
            raise CaprError(f"dense search is not possible: {fact}")
        notices.append(f"only words were compared, not meanings: {fact}")
        return None


def shipped(kind: str) -> Path:
    """The folder of the `encoder` or the `ranker` that ships."""
    return Path(str(files("capr").joinpath("weights", kind)))


def load_ranker(folder: str | os.PathLike[str], threads: int = 0, file: str = "model.onnx") -> Ranker:
    """The cross- or poly-encoder of a folder."""
    poly = any_manifest(Path(folder), "ranker").kind == "poly"
    return OnnxPoly(folder, threads, file) if poly else OnnxRanker(folder, threads, file)


def load_model(folder: str | os.PathLike[str], threads: int = 0, file: str = "model.onnx") -> OnnxEncoder | Ranker:
    """The model of a folder, of whichever kind; each scores passages for a query."""
    encoder = any_manifest(Path(folder)).kind == "encoder"
    return OnnxEncoder(folder, threads, file) if encoder else load_ranker(folder, threads, file)

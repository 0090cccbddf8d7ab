"""The models of a library: those that were given, that it remembers, or that ship."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path

from capr.documents import CaprError
from capr.index import Encoder, Index, OnnxEncoder
from capr.index.onnx import any_manifest
from capr.search.rerank import OnnxPoly, OnnxRanker, Ranker

NONE = "none"
WEIGHTS = "CAPR_WEIGHTS"  # names a folder with models that take the place of those that ship
SHIPPED = "capr"  # remembered instead of a folder, which lies elsewhere on every machine


class Models:
    """Loads models when they are needed.

    Args:
        folder: of the library, for messages.
        encoder: given by the user: a folder, an `Encoder`, or "none".
        ranker: given by the user: a folder, a `Ranker`, or "none".
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
        """The ranker that was given, else the one that ships."""
        given = self._given_ranker
        if given == NONE:
            return None
        if given is None:
            return _shipped_ranker(shipped("ranker")) if shipped("ranker").is_dir() else None
        return load_ranker(given) if isinstance(given, str | os.PathLike) else given

    def with_encoder(self, encoder: Encoder | str | os.PathLike[str]) -> Models:
        """The same with another encoder."""
        return Models(self._folder, encoder, self._given_ranker)

    def wants_ranker(self, mode: str) -> bool:
        """Whether a search re-ranks if nobody says: by one that was given; by the one that ships if hybrid."""
        return self._given_ranker != NONE and (self._given_ranker is not None or mode == "hybrid")

    def encoder(self, index: Index) -> Encoder | None:
        """The encoder that was given, or the one that the library remembers; None if there is none."""
        known = index.encoder()
        changed = self._given is None and self._encoder and known and known.digest != self._encoder.identity.digest
        if self._encoder is None or changed:
            given = self._given
            if given is None and known is not None:
                given = known.folder
                place = shipped("encoder") if given == SHIPPED else Path(given)
                if not place.is_dir():
                    fix = "put it back, or say where it is with --encoder"
                    fact = f"the encoder {known.name} of {self._folder} is not in {place} any more"
                    raise CaprError(f"{fact}. Fix: {fix}.")
            self._encoder = load_encoder(given)
        return self._encoder

    def to_add(self, index: Index) -> Encoder | None:
        """The encoder for documents that are added; to a library that is empty, the one that ships if none is given."""
        self.begin(index)
        return self._fitting(index)

    def begin(self, index: Index, empty: bool = True) -> None:
        """Takes the encoder that ships where none is given or remembered, in a library that is empty, or in any."""
        wanted = self._given is None and index.encoder() is None and not (empty and index.stats().documents)
        if wanted and shipped("encoder").is_dir():
            self._encoder = load_encoder(SHIPPED)

    def command(self) -> str:
        """That gives the library vectors."""
        return f"capr encode {self._folder}{'' if shipped('encoder').is_dir() else ' --encoder FOLDER'}"

    def _fitting(self, index: Index) -> Encoder | None:
        """The encoder, if it is the one that made the vectors that are there; None if there is none."""
        encoder, known = self.encoder(index), index.encoder()
        if encoder is not None and known is not None and known.digest != encoder.identity.digest:
            fact = f"the vectors of {self._folder} were made by {known.name} ({known.digest[:8]})"
            other = f"{encoder.identity.name} ({encoder.identity.digest[:8]})"
            named = "" if encoder.identity.folder == SHIPPED else f" --encoder {encoder.identity.folder}"
            fix = f"capr encode {self._folder}{named}, which makes them again"
            raise CaprError(f"{fact}, and {other} cannot be used with them. Fix: {fix}.")
        return encoder

    def to_search(self, index: Index, mode: str, notices: list[str]) -> Encoder | None:
        """The encoder for a query; where there is none, hybrid search goes without, and tells it."""
        if mode == "lexical" or (self._given == NONE and mode == "hybrid"):
            return None
        try:
            encoder = self._fitting(index)
            if encoder is not None and index.encoder() is not None:
                return encoder
            fact = f"the library has no vectors. Fix: {self.command()}."
            if self._given == NONE:
                fact = 'the encoder is "none". Fix: leave that out.'
        except CaprError as error:
            fact = str(error)
        if mode == "dense":
            raise CaprError(f"dense search is not possible: {fact}")
        notices.append(f"only words were compared, not meanings: {fact}")
        return None


def shipped(kind: str) -> Path:
    """The folder of the `encoder` or the `ranker` that ships, or that takes its place."""
    instead = os.environ.get(WEIGHTS)
    return (Path(instead) if instead else Path(str(files("capr").joinpath("weights")))) / kind


def load_ranker(folder: str | os.PathLike[str], threads: int = 0, file: str = "model.onnx", pieces: int = 0) -> Ranker:
    """The cross- or poly-encoder of a folder."""
    poly = any_manifest(Path(folder), "ranker").kind == "poly"
    return OnnxPoly(folder, threads, file, pieces) if poly else OnnxRanker(folder, threads, file, pieces)


@lru_cache(maxsize=2)
def _shipped_encoder(folder: Path) -> OnnxEncoder:
    encoder = OnnxEncoder(folder)
    encoder.identity = replace(encoder.identity, folder=SHIPPED)
    return encoder


_shipped_ranker = lru_cache(maxsize=2)(load_ranker)


def load_encoder(given: Encoder | str | os.PathLike[str] | None) -> Encoder | None:
    """The encoder of a folder, the one that ships, or none."""
    if given is None or given == NONE:
        return None
    if given == SHIPPED:
        return _shipped_encoder(shipped("encoder"))
    return OnnxEncoder(given) if isinstance(given, str | os.PathLike) else given


def load_model(
    folder: str | os.PathLike[str], threads: int = 0, file: str = "model.onnx", pieces: int = 0
) -> OnnxEncoder | Ranker:
    """The model of a folder, of whichever kind; each scores passages for a query."""
    encoder = any_manifest(Path(folder)).kind == "encoder"
    return (OnnxEncoder if encoder else load_ranker)(folder, threads, file, pieces)

"""The models of a library: those that were given, that it remembers, or that ship."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path

from capr.documents import CaprError, UnavailableError
from capr.index import Discourse, Encoder, Grain, Index, OnnxEncoder
from capr.index.discourse import load_discourse
from capr.index.onnx import any_manifest
from capr.search.choice import NONE, SHIPPED, Choice, shipped
from capr.search.ranked_reader import Joint, RankedReader
from capr.search.reader import AnswerReader, load_reader
from capr.search.rerank import OnnxPoly, OnnxRanker, Ranker

__all__ = ["NONE", "SHIPPED", "Models", "answer_reader", "load_encoder", "load_model", "load_ranker", "shipped"]


class Models:
    """Loads models when they are needed.

    Args:
        folder: of the library, for messages.
        encoder: given by the user: a folder, an `Encoder`, or "none".
        ranker: given by the user: a folder, a `Ranker`, or "none".
        discourse: given by the user: a folder, a `Discourse`, or "none".
        reader: given by the user: a folder, an `AnswerReader`, or "none".
    """

    def __init__(
        self,
        folder: Path,
        encoder: Encoder | str | os.PathLike[str] | None,
        ranker: Ranker | str | os.PathLike[str] | None,
        discourse: Discourse | str | os.PathLike[str] | None = None,
        reader: AnswerReader | str | os.PathLike[str] | None = None,
    ) -> None:
        self._folder, self._given_ranker, self._given_reader = folder, ranker, reader
        self._encoder = Choice(folder, Grain.PASSAGES, encoder, load_encoder)
        self._discourse = Choice(folder, Grain.SENTENCES, discourse, _load_discourse)

    @cached_property
    def ranker(self) -> Ranker | None:
        """The ranker that was given, else the one that ships."""
        given = self._given_ranker
        if given == NONE:
            return None
        if given is None:
            return _shipped_ranker(shipped("ranker")) if shipped("ranker").is_dir() else None
        return load_ranker(given) if isinstance(given, str | os.PathLike) else given

    @cached_property
    def reader(self) -> AnswerReader:
        """The reader of answers that was given, else the one that ships."""
        return answer_reader(self._given_reader)

    def with_encoder(self, encoder: Encoder | str | os.PathLike[str]) -> Models:
        """The same with another encoder."""
        return Models(self._folder, encoder, self._given_ranker, self._discourse.given, self._given_reader)

    def with_discourse(self, discourse: Discourse | str | os.PathLike[str]) -> Models:
        """The same with another discourse model."""
        return Models(self._folder, self._encoder.given, self._given_ranker, discourse, self._given_reader)

    def wants_ranker(self, mode: str) -> bool:
        """Whether a search re-ranks if nobody says: by one that was given; by the one that ships if hybrid."""
        return self._given_ranker != NONE and (self._given_ranker is not None or mode == "hybrid")

    def encoder(self, index: Index) -> Encoder | None:
        """The encoder that was given, or the one that the library remembers; None if there is none."""
        return self._encoder.model(index)

    def discourse(self, index: Index) -> Discourse | None:
        """The discourse model, likewise."""
        return self._discourse.model(index)

    def to_add(self, index: Index) -> Encoder | None:
        """The encoder for documents that are added; to a library that is empty, the one that ships if none is given."""
        self.begin(index)
        return self._encoder.fitting(index)

    def discourse_to_add(self, index: Index) -> Discourse | None:
        """The discourse model for documents that are added; None if none is given or remembered."""
        return self._discourse.fitting(index)

    def check(self) -> None:
        """Complains of an encoder or a discourse model that was given and is none."""
        self._encoder.check()
        self._discourse.check()

    def begin(self, index: Index, empty: bool = True) -> None:
        """Takes the encoder that ships where none is given or remembered, in a library that is empty, or in any."""
        wanted = self._encoder.given is None and index.encoder() is None and not (empty and index.stats().documents)
        if wanted and shipped("encoder").is_dir():
            self._encoder.take(SHIPPED)

    def command(self, discoursed: bool) -> str:
        """That gives passages vectors; of a library with a discourse model, it has to name the encoder."""
        named = (f" --encoder {SHIPPED}" if discoursed else "") if shipped("encoder").is_dir() else " --encoder FOLDER"
        return f"capr encode {self._folder}{named}"

    def discourse_command(self) -> str:
        """That gives sentences vectors that have none of the model of the library."""
        named = f" --discourse {self._discourse.given}" if isinstance(self._discourse.given, str | os.PathLike) else ""
        return f"capr encode {self._folder}{'' if self._discourse.given == NONE else named}"

    def to_search(self, index: Index, mode: str, notices: list[str]) -> Encoder | None:
        """The encoder for a query; where there is none, hybrid search goes without, and tells it."""
        if mode in ("lexical", "cdv") or (self._encoder.given == NONE and mode == "hybrid"):
            return None
        try:
            encoder = self._encoder.fitting(index)
            if encoder is not None and index.encoder() is not None:
                return encoder
            fix = self.command(index.encoder(Grain.SENTENCES) is not None)
            fact = f"the library has no vectors. Fix: {fix}."
            if self._encoder.given == NONE:
                fact = 'the encoder is "none". Fix: leave that out.'
        except CaprError as error:
            fact = str(error)
        if mode == "dense":
            raise CaprError(f"dense search is not possible: {fact}")
        notices.append(f"only words were compared, not meanings: {fact}")
        return None

    def discourse_to_search(self, index: Index) -> Discourse:
        """The discourse model for a query."""
        if self._discourse.given == NONE:
            raise CaprError('cdv search is not possible: the discourse model is "none". Fix: leave that out.')
        discourse = self._discourse.fitting(index)
        if discourse is None or index.encoder(Grain.SENTENCES) is None:
            fix = f"capr encode {self._folder} --discourse FOLDER"
            raise CaprError(f"cdv search is not possible: the sentences have no vectors. Fix: {fix}.")
        return discourse


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


def answer_reader(given: AnswerReader | str | os.PathLike[str] | None) -> AnswerReader:
    """The reader of answers of a folder, or the one that ships; there has to be one."""
    if given == NONE:
        raise UnavailableError('there is nobody to read answers, since the reader is "none". Fix: leave that out.')
    if given is None:
        if not shipped("reader").is_dir():
            fix = "train one with capr train reader, and name its folder (--reader FOLDER, or --model)"
            raise UnavailableError(f"there is no reader of answers in {shipped('reader')}. Fix: {fix}.")
        return _loaded_reader(shipped("reader"))
    return _loaded_reader(Path(given)) if isinstance(given, str | os.PathLike) else given


@lru_cache(maxsize=2)
def _loaded_reader(folder: Path) -> AnswerReader:
    """The reader of a folder, with the ranker that ships if it was fitted to that."""
    reader, joint, place = load_reader(folder), Joint.read(folder), shipped("ranker")
    if joint is None or not place.is_dir() or any_manifest(place, "ranker").name != joint.ranker:
        return reader
    return RankedReader(reader, _shipped_ranker(place), joint)


def load_encoder(given: Encoder | str | os.PathLike[str] | None) -> Encoder | None:
    """The encoder of a folder, the one that ships, or none."""
    if given is None or given == NONE:
        return None
    if given == SHIPPED:
        return _shipped_encoder(shipped("encoder"))
    return OnnxEncoder(given) if isinstance(given, str | os.PathLike) else given


def _load_discourse(given: Discourse | str | os.PathLike[str] | None) -> Discourse | None:
    return load_discourse(given) if isinstance(given, str | os.PathLike) else given


def load_model(
    folder: str | os.PathLike[str], threads: int = 0, file: str = "model.onnx", pieces: int = 0
) -> OnnxEncoder | Ranker:
    """The model of a folder, of whichever kind; each scores passages for a query."""
    encoder = any_manifest(Path(folder)).kind == "encoder"
    return (OnnxEncoder if encoder else load_ranker)(folder, threads, file, pieces)

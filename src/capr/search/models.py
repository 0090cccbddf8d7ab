"""The models of a library: the user's choice, the models that it remembers, or the built-in ones."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path

from capr.documents import CaprError, UnavailableError
from capr.index import PASSAGES, SENTENCES, Index
from capr.runtime.discourse import Discourse
from capr.runtime.encoder import Encoder, OnnxEncoder
from capr.runtime.kinds import load_model, read_manifest
from capr.runtime.ranked_reader import Joint, RankedReader
from capr.runtime.ranker import Ranker
from capr.runtime.reader import AnswerReader
from capr.runtime.shipped import SHIPPED, shipped
from capr.search.model_slot import NONE, ModelSlot

__all__ = ["NONE", "Models", "answer_reader", "load_encoder"]


class Models:
    """Loads models on first use.

    Args:
        folder: the folder or the address of the library, for messages.
        encoder: the user's choice: a folder, an `Encoder`, or "none".
        ranker: the user's choice: a folder, a `Ranker`, or "none".
        discourse: the user's choice: a folder, a `Discourse`, or "none".
        reader: the user's choice: a folder, an `AnswerReader`, or "none".
    """

    def __init__(
        self,
        folder: str | Path,
        encoder: Encoder | str | os.PathLike[str] | None,
        ranker: Ranker | str | os.PathLike[str] | None,
        discourse: Discourse | str | os.PathLike[str] | None = None,
        reader: AnswerReader | str | os.PathLike[str] | None = None,
    ) -> None:
        self._folder, self._ranker_choice, self._reader_choice = folder, ranker, reader
        self._encoder = ModelSlot(folder, PASSAGES, encoder, load_encoder)
        self._discourse = ModelSlot(folder, SENTENCES, discourse, _load_discourse)

    @cached_property
    def ranker(self) -> Ranker | None:
        """The ranker that the user named; by default, the built-in one."""
        choice = self._ranker_choice
        if choice == NONE:
            return None
        if choice is None:
            return _shipped_ranker(shipped("ranker")) if shipped("ranker").is_dir() else None
        return load_model(choice, "ranker") if isinstance(choice, str | os.PathLike) else choice

    @cached_property
    def reader(self) -> AnswerReader:
        """The reader of answers that the user named; by default, the built-in one."""
        return answer_reader(self._reader_choice)

    def with_encoder(self, encoder: Encoder | str | os.PathLike[str]) -> Models:
        """Return the same models with another encoder."""
        return Models(self._folder, encoder, self._ranker_choice, self._discourse.choice, self._reader_choice)

    def with_discourse(self, discourse: Discourse | str | os.PathLike[str]) -> Models:
        """Return the same models with another discourse model."""
        return Models(self._folder, self._encoder.choice, self._ranker_choice, discourse, self._reader_choice)

    def reranks(self, mode: str) -> bool:
        """Return whether a search re-ranks by default: with the user's ranker in every mode, else in hybrid mode."""
        return self._ranker_choice != NONE and (self._ranker_choice is not None or mode == "hybrid")

    def encoder(self, index: Index) -> Encoder | None:
        """Return the encoder that the user named or that the library remembers; None if there is none."""
        return self._encoder.model(index)

    def discourse(self, index: Index) -> Discourse | None:
        """Return the discourse model that the user named or that the library remembers; None if there is none."""
        return self._discourse.model(index)

    def encoder_for_adding(self, index: Index) -> Encoder | None:
        """Return the encoder for new documents. In an empty library, the default is the built-in encoder."""
        self.use_shipped_encoder(index)
        return self._encoder.fitting(index)

    def discourse_for_adding(self, index: Index) -> Discourse | None:
        """Return the discourse model for new documents; None if there is none."""
        return self._discourse.fitting(index)

    def check(self) -> None:
        """Raise `CaprError` if the user named an encoder or a discourse model that is invalid."""
        self._encoder.check()
        self._discourse.check()

    def check_folders(self) -> None:
        """Raise `CaprError` if a folder that the user named holds no model of its kind. Networks are not loaded."""
        if isinstance(choice := self._encoder.choice, str | os.PathLike) and choice not in (NONE, SHIPPED):
            OnnxEncoder.read_manifest(Path(choice))
        choices = {
            "ranker": self._ranker_choice,
            "discourse": self._discourse.choice,
            "reader": self._reader_choice,
        }
        for role, other_choice in choices.items():
            if isinstance(other_choice, str | os.PathLike) and other_choice != NONE:
                read_manifest(other_choice, role)

    def use_shipped_encoder(self, index: Index, only_if_empty: bool = True) -> None:
        """Use the built-in encoder if the user named none and the library remembers none.

        Args:
            index: the index of the library.
            only_if_empty: leave a library with documents as it is.
        """
        is_missing = self._encoder.choice is None and index.encoder() is None
        if is_missing and not (only_if_empty and index.stats().documents) and shipped("encoder").is_dir():
            self._encoder.use(SHIPPED)

    def command(self, discoursed: bool) -> str:
        """Return the command that makes the vectors of passages.

        Args:
            discoursed: whether the library has a discourse model; the command then has to name the encoder.
        """
        option = (f" --encoder {SHIPPED}" if discoursed else "") if shipped("encoder").is_dir() else " --encoder FOLDER"
        return f"capr encode {self._folder}{option}"

    def discourse_command(self) -> str:
        """Return the command that makes the missing vectors of sentences."""
        choice = self._discourse.choice
        option = f" --discourse {choice}" if isinstance(choice, str | os.PathLike) and choice != NONE else ""
        return f"capr encode {self._folder}{option}"

    def encoder_for_search(self, index: Index, mode: str, notices: list[str]) -> Encoder | None:
        """Return the encoder for a query. Without one, hybrid search compares only words, and a notice says why."""
        if mode in ("lexical", "cdv") or (self._encoder.choice == NONE and mode == "hybrid"):
            return None
        try:
            encoder = self._encoder.fitting(index)
            if encoder is not None and index.encoder() is not None:
                return encoder
            fix = self.command(index.encoder(SENTENCES) is not None)
            fact = f"the library has no vectors. Fix: {fix}."
            if self._encoder.choice == NONE:
                fact = 'the encoder is "none". Fix: omit --encoder none.'
        except CaprError as error:
            fact = str(error)
        if mode == "dense":
            raise CaprError(f"dense search is not possible: {fact}")
        notices.append(f"this search matched words only, not meaning: {fact}")
        return None

    def discourse_for_search(self, index: Index) -> Discourse:
        """Return the discourse model for a query, or raise `CaprError`."""
        if self._discourse.choice == NONE:
            raise CaprError('cdv search is not possible: the discourse model is "none". Fix: omit --discourse none.')
        discourse = self._discourse.fitting(index)
        if discourse is None or index.encoder(SENTENCES) is None:
            fix = f"capr encode {self._folder} --discourse FOLDER"
            raise CaprError(f"cdv search is not possible: the sentences have no vectors. Fix: {fix}.")
        return discourse


@lru_cache(maxsize=2)
def _shipped_encoder(folder: Path) -> OnnxEncoder:
    encoder = OnnxEncoder(folder)
    encoder.identity = replace(encoder.identity, folder=SHIPPED)
    return encoder


@lru_cache(maxsize=2)
def _shipped_ranker(folder: Path) -> Ranker:
    ranker: Ranker = load_model(folder, "ranker")
    return ranker


def answer_reader(choice: AnswerReader | str | os.PathLike[str] | None) -> AnswerReader:
    """Return the reader of answers in a folder; by default, the built-in one.

    Raises:
        UnavailableError: there is no reader.
    """
    if choice == NONE:
        raise UnavailableError('questions cannot be answered: the reader is "none". Fix: omit --reader none.')
    if choice is None:
        if not shipped("reader").is_dir():
            fix = "train one with capr train reader, and name its folder (--reader FOLDER, or --model)"
            raise UnavailableError(f"there is no reader of answers in {shipped('reader')}. Fix: {fix}.")
        return _loaded_reader(shipped("reader"))
    return _loaded_reader(Path(choice)) if isinstance(choice, str | os.PathLike) else choice


@lru_cache(maxsize=2)
def _loaded_reader(folder: Path) -> AnswerReader:
    """Return the reader in a folder, combined with the built-in ranker if the reader was fitted to that ranker."""
    reader: AnswerReader = load_model(folder, "reader")
    joint, ranker_folder = Joint.read(folder), shipped("ranker")
    if joint is None or not ranker_folder.is_dir() or read_manifest(ranker_folder, "ranker").name != joint.ranker:
        return reader
    return RankedReader(reader, _shipped_ranker(ranker_folder), joint)


def load_encoder(choice: Encoder | str | os.PathLike[str] | None) -> Encoder | None:
    """Return the encoder of a folder, the built-in one (`capr`), or None."""
    if choice is None or choice == NONE:
        return None
    if choice == SHIPPED:
        return _shipped_encoder(shipped("encoder"))
    return OnnxEncoder(choice) if isinstance(choice, str | os.PathLike) else choice


def _load_discourse(choice: Discourse | str | os.PathLike[str] | None) -> Discourse | None:
    return load_model(choice, "discourse") if isinstance(choice, str | os.PathLike) else choice

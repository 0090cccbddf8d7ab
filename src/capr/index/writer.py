"""The writer of the engine that ships: the truth first, then what is derived from it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from shutil import rmtree
from typing import TYPE_CHECKING

from capr.index.derived import DamagedError
from capr.index.protocol import EncoderIdentity, Grain, Prepared, Sentences, Vector
from capr.index.vectors import FOLDERS, VectorsWriter
from capr.index.words import WordsWriter

if TYPE_CHECKING:
    from capr.index.embedded import EmbeddedIndex

log = logging.getLogger("capr")
BATCH = 2000  # vectors that are taken into their index at once


class EmbeddedWriter:
    """Changes the truth first; the derived indexes follow, and catch up later if they could not."""

    def __init__(self, index: EmbeddedIndex, fresh: Collection[str] = ()) -> None:
        """`fresh` are derived indexes that have to be made again."""
        self._index, self._store, self._fresh = index, index.store, set(fresh)
        self._pending: list[Callable[[], object]] = []
        self._words: WordsWriter | None = None
        self._has: tuple[int, int] | None = None  # the last passage and removal that the index of words has
        self._vectors: dict[Grain, VectorsWriter] = {}

    def add(self, prepared: Prepared) -> None:
        self._pending.append(lambda: self._store.add(prepared))

    def remove(self, ids: Iterable[str]) -> int:
        wanted = list(ids)
        with self._store.errors():
            known = len(self._store.digests(wanted))
        self._pending.append(lambda: self._store.remove(wanted))
        return known

    def set_encoder(self, encoder: EncoderIdentity, grain: Grain = Grain.PASSAGES) -> None:
        self._pending.append(lambda: self._store.set_encoder(encoder, grain))

    def set_vectors(self, vectors: Mapping[int, Vector]) -> None:
        self._pending.append(lambda: self._store.set_vectors(vectors))

    def set_sentences(self, sentences: Mapping[int, Sentences]) -> None:
        self._pending.append(lambda: self._store.set_sentences(sentences))

    def drop_vectors(self, grain: Grain, numbers: Sequence[int]) -> None:
        """Forgets vectors that are not what they should be."""
        self._pending.append(lambda: self._store.drop_vectors(grain, numbers))

    def commit(self) -> None:
        pending, self._pending = self._pending, []
        if pending:
            with self._store.changing():
                for change in pending:
                    change()
            self.catch_up()

    def make_again(self, *names: str) -> None:
        """Makes derived indexes anew."""
        self.close()
        self._fresh, self._has, self._vectors = set(names), None, {}
        self.catch_up()

    def catch_up(self) -> None:
        """Takes into the derived indexes what they do not have yet; one that is damaged is made again."""
        try:
            self._catch_up_words()
            self._catch_up_vectors()
        except (OSError, DamagedError) as error:  # a full disk: the documents are safe, the rest can wait
            with suppress(DamagedError):
                self.close()  # or tantivy keeps its lock
            self._words, self._has, self._vectors = None, None, {}
            told = "%s: the derived indexes are behind (%s); they catch up later"
            log.warning(told, self._index.folder, str(error))

    def _catch_up_words(self) -> None:
        store, folder = self._store, self._index.folder / "words"
        passage, removed = store.last()
        if self._has is None:
            words = None if "words" in self._fresh else self._index.words(logging.WARNING)
            self._has = (words.through, words.removed) if words else (-1, 0)
        if self._has == (passage, removed):
            return
        through, gone = self._has
        new = through < 0  # made beside the one that readers may still use
        if new:
            folder = folder.with_name("words.part")
            rmtree(folder, ignore_errors=True)
        taken_over = self._words is None
        if self._words is None:
            self._words = WordsWriter(folder)
        for row in store.removed_since(gone):
            self._words.remove(row.document)
        for document, passages in store.passages_since(through):
            if taken_over and not new:
                self._words.remove(document)  # what a killed process has left of it
            self._words.add(document, passages)
        self._words.commit(passage, removed)
        self._has = passage, removed
        if new:
            self.close()
            self._fresh.discard("words")
            old = self._index.folder / "words"
            aside = old.with_name("words.old")
            rmtree(aside, ignore_errors=True)
            if old.exists():
                old.rename(aside)
            folder.rename(old)
            rmtree(aside, ignore_errors=True)

    def _catch_up_vectors(self) -> None:
        for grain in self._store.grains():
            writer = self._vectors_of(grain)
            through = self._store.last_vector(grain)
            while writer.state.through < through or not writer.state.sums:
                rows = self._store.codes_since(grain, writer.state.through, BATCH)
                last = rows[-1][0] if len(rows) == BATCH else through
                writer.append([number for _, number, _ in rows], [code for *_, code in rows], last)

    def _vectors_of(self, grain: Grain) -> VectorsWriter:
        """Writes the index of a grain; made anew where the one that is there cannot be gone on with."""
        source, encoder, name = self._store.source(grain), self._store.encoder(grain), FOLDERS[grain]
        known = self._vectors.get(grain)
        if known is None or known.state.source != source:
            fresh = name in self._fresh or self._index.vectors(grain, logging.WARNING) is None
            self._fresh.discard(name)
            known = VectorsWriter(self._index.folder / name, source, encoder.dimensions if encoder else 0, fresh)
            self._vectors[grain] = known
        return known

    def close(self) -> None:
        """Waits for what tantivy does in the background."""
        if self._words is not None:
            self._words.close()
            self._words = None

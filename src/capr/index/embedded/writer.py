"""The writer of the embedded engine: it changes the database first, then the derived indexes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from shutil import rmtree

from capr.index.embedded.derived import DamagedError
from capr.index.embedded.space_names import WORDS, names_of
from capr.index.embedded.store import Store
from capr.index.embedded.vectors import VectorIndexWriter
from capr.index.embedded.views import Views
from capr.index.embedded.words import WordIndexWriter
from capr.index.records import PassageKey, PassageVectors, PreparedDocument
from capr.index.spaces import PASSAGES, Space
from capr.runtime.identity import EncoderIdentity
from capr.segment import Cutting

log = logging.getLogger("capr")
BATCH = 2000  # vectors that are appended to their index at once


class EmbeddedWriter:
    """Commits changes to the database, then to the derived indexes; if that fails, they catch up later."""

    def __init__(self, store: Store, views: Views, fresh: Collection[str] = ()) -> None:
        """`fresh` names the derived indexes to rebuild."""
        self._store, self._views, self._fresh = store, views, set(fresh)
        self._pending: list[Callable[[], object]] = []
        self._words: WordIndexWriter | None = None
        self._indexed: tuple[int, int] | None = None  # the last passage and removal in the word index
        self._vectors: dict[Space, VectorIndexWriter] = {}

    def add(self, prepared: PreparedDocument) -> None:
        self._pending.append(lambda: self._store.add(prepared))

    def remove(self, ids: Iterable[str]) -> int:
        ids = list(ids)
        with self._store.errors():
            count = len(self._store.digests(ids))
        self._pending.append(lambda: self._store.remove(ids))
        return count

    def set_cutting(self, cutting: Cutting) -> None:
        self._pending.append(lambda: self._store.set_cutting(cutting))

    def set_encoder(self, encoder: EncoderIdentity | None, space: Space = PASSAGES) -> None:
        self._pending.append(lambda: self._store.set_encoder(encoder, space))

    def set_vectors(self, vectors: Mapping[PassageKey, PassageVectors], space: Space = PASSAGES) -> None:
        self._pending.append(lambda: self._set_vectors(vectors, space))

    def _set_vectors(self, vectors: Mapping[PassageKey, PassageVectors], space: Space) -> None:
        numbers = self._store.numbers(list(vectors))
        self._store.set_vectors({number: vectors[key] for key, number in numbers.items()}, space)

    def drop_vectors(self, space: Space, numbers: Sequence[int]) -> None:
        """Drop invalid vectors."""
        self._pending.append(lambda: self._store.drop_vectors(space, numbers))

    def commit(self) -> None:
        pending, self._pending = self._pending, []
        if pending:
            with self._store.changing():
                for change in pending:
                    change()
            self.catch_up()

    def rebuild(self, *names: str) -> None:
        """Rebuild derived indexes."""
        self.close()
        self._fresh, self._indexed, self._vectors = set(names), None, {}
        self.catch_up()

    def catch_up(self) -> None:
        """Add the missing changes to the derived indexes; rebuild a damaged one."""
        try:
            self._catch_up_words()
            self._catch_up_vectors()
        except (OSError, DamagedError) as error:  # a full disk: the documents are safe, the indexes can wait
            with suppress(DamagedError):
                self.close()  # or tantivy keeps its lock
            self._words, self._indexed, self._vectors = None, None, {}
            message = "%s: the derived indexes are behind (%s); they catch up later"
            log.warning(message, self._store.folder, str(error))

    def _catch_up_words(self) -> None:
        store, folder = self._store, self._store.folder / WORDS
        last_passage, last_removal = store.last()
        if self._indexed is None:
            words = None if WORDS in self._fresh else self._views.words(logging.WARNING)
            self._indexed = (words.through, words.removed) if words else (-1, 0)
        if self._indexed == (last_passage, last_removal):
            return
        through, removed = self._indexed
        is_new = through < 0  # written beside the index that readers may still use
        if is_new:
            folder = folder.with_name("words.part")
            rmtree(folder, ignore_errors=True)
        reopened = self._words is None
        if self._words is None:
            self._words = WordIndexWriter(folder)
        for row in store.removed_since(removed):
            self._words.remove(row.document)
        for document, passages in store.passages_since(through):
            if reopened and not is_new:
                self._words.remove(document)  # the passages that a killed process may have added
            self._words.add(document, passages)
        self._words.commit(last_passage, last_removal)
        self._indexed = last_passage, last_removal
        if is_new:
            self.close()
            self._fresh.discard(WORDS)
            target = self._store.folder / WORDS
            old = target.with_name("words.old")
            rmtree(old, ignore_errors=True)
            if target.exists():
                target.rename(old)
            folder.rename(target)
            rmtree(old, ignore_errors=True)

    def _catch_up_vectors(self) -> None:
        for space in self._store.searched_spaces():
            writer = self._vectors_of(space)
            through = self._store.last_vector(space)
            while writer.state.through < through or not writer.state.sums:
                rows = self._store.codes_since(space, writer.state.through, BATCH)
                last = rows[-1][0] if len(rows) == BATCH else through
                writer.append([number for _, number, _ in rows], [code for *_, code in rows], last)

    def _vectors_of(self, space: Space) -> VectorIndexWriter:
        """Return the writer of a space's vector index, a new index if the existing one is unusable."""
        source, encoder, name = self._store.source(space), self._store.encoder(space), names_of(space).folder
        writer = self._vectors.get(space)
        if writer is None or writer.state.source != source:
            fresh = name in self._fresh or self._views.vectors(space, logging.WARNING) is None
            self._fresh.discard(name)
            writer = VectorIndexWriter(self._store.folder / name, source, encoder.dimensions if encoder else 0, fresh)
            self._vectors[space] = writer
        return writer

    def close(self) -> None:
        """Wait for tantivy's background merges."""
        if self._words is not None:
            self._words.close()
            self._words = None

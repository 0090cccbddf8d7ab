"""The derived indexes as readers see them: one consistent state, updated when the database has changed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from capr.documents import CaprError
from capr.index.embedded.derived import STATE, DamagedError
from capr.index.embedded.lock import is_locked
from capr.index.embedded.postings import Postings
from capr.index.embedded.space_names import WORDS, derived, names_of
from capr.index.embedded.store import Store
from capr.index.embedded.vectors import VectorIndex
from capr.index.embedded.words import WordIndex
from capr.index.spaces import Space

log = logging.getLogger("capr")
MAX_CHECKED = 64_000_000  # bytes of a derived index whose checksums are compared whenever it is opened
RETRY = 1.0  # seconds after which a reader that is behind tries again to update the derived indexes
ATTEMPTS = 5  # to open a derived index beside a writer before it counts as damaged
LOCK_WAIT = 2.0  # seconds that a writer waits for a reader that updates the derived indexes


@dataclass(frozen=True)
class View:
    """One state of the derived indexes."""

    generation: int
    words: WordIndex
    vectors: Mapping[Space, VectorIndex]
    postings: Postings
    behind: bool
    stamp: tuple[int, ...]
    opened: float


class Views:
    """Opens the derived indexes of a folder, and caches the last view until something changes.

    Args:
        store: the database.
        catch_up: updates the derived indexes. It waits that many seconds for the write lock, and raises `CaprError` if
            another process keeps it.
    """

    def __init__(self, store: Store, catch_up: Callable[[float], None]) -> None:
        self._store, self._catch_up = store, catch_up
        self._opening = threading.Lock()
        self._view: View | None = None

    def forget(self) -> None:
        """Drop the current view, so that the next call of `view` opens the files again."""
        self._view = None

    def view(self) -> View:
        """Return the current derived indexes. Update them first, unless another process is writing."""
        with self._store.errors():
            generation = self._store.generation()
            view = self._view
            if view is not None and view.generation == generation and not self._stale(view):
                return view
            with self._opening:
                view = self._view
                if view is None or view.generation < generation or self._stale(view):
                    view = self._view = self._open(generation)
                return view

    def _stale(self, view: View) -> bool:
        """Whether a view was behind when it was opened, and may be current if it is opened again."""
        return view.behind and (view.stamp != self._stamp() or time.monotonic() > view.opened + RETRY)

    def _stamp(self) -> tuple[int, ...]:
        """Return the modification times of the derived indexes, which change with them."""
        times = []
        for name in derived():
            with suppress(OSError):
                times.append((self._store.folder / name / STATE).stat().st_mtime_ns)
        return tuple(times)

    def _open(self, generation: int) -> View:
        """Open the derived indexes, and update them if that is possible."""
        folder = self._store.folder
        stamp = self._stamp()
        words, vectors = self.words(), self._all_vectors()
        if self._behind(words, vectors):
            try:
                self._catch_up(0 if words else LOCK_WAIT)
            except CaprError as error:  # a writer is active and will update them, or this user may not write
                log.debug("the derived indexes of %s are behind: %s", folder, error)
            stamp = self._stamp()
            words, vectors = self.words(), self._all_vectors()
        if words is None and self._view is not None:
            words = self._view.words  # during a rebuild, the open files remain readable
        if words is None:
            fix = "give this user write access there, check the disk, or wait for the process that is writing"
            raise CaprError(f"{folder / WORDS} is missing and cannot be built now. Fix: {fix}.")
        vectors = {space: index for space, index in vectors.items() if index.state.source == self._store.source(space)}
        behind = self._behind(words, vectors)
        return View(generation, words, vectors, Postings(self._store), behind, stamp, time.monotonic())

    def _all_vectors(self) -> dict[Space, VectorIndex]:
        """Open the vector indexes that exist and are intact."""
        indexes = ((space, self.vectors(space)) for space in self._store.searched_spaces())
        return {space: index for space, index in indexes if index is not None}

    def _behind(self, words: WordIndex | None, vectors: Mapping[Space, VectorIndex]) -> bool:
        """Whether a derived index lacks committed changes."""
        if words is None or (words.through, words.removed) != self._store.last():
            return True
        for space in self._store.searched_spaces():
            state = vectors[space].state if space in vectors else None
            if state is None or (state.through, state.source) != (
                self._store.last_vector(space),
                self._store.source(space),
            ):
                return True
        return False

    def words(self, level: int = logging.DEBUG) -> WordIndex | None:
        """Open the word index; return None if it is missing or damaged. Log damage at a level."""
        index: WordIndex | None = self._intact(WORDS, WordIndex, level)
        return index

    def vectors(self, space: Space, level: int = logging.DEBUG) -> VectorIndex | None:
        """Open the vector index of a space; return None if it is missing or damaged. Log damage at a level."""
        index: VectorIndex | None = self._intact(names_of(space).folder, VectorIndex, level)
        return index

    def _intact(self, name: str, kind: type[Any], level: int) -> Any:
        """Open a derived index; return None if it is missing or damaged. Log damage at a level."""
        folder = self._store.folder / name
        for _ in range(ATTEMPTS):
            if not (folder / STATE).exists():
                return None
            try:
                index = kind(folder)
                damaged = index.damaged() if index.size() <= MAX_CHECKED else []
            except DamagedError as error:
                damaged = [str(error)]
            if not damaged:
                return index
            if not is_locked(self._store.folder):
                break
            time.sleep(0.05)  # a writer may have just replaced files
        log.log(level, "%s is damaged (%s); capr rebuilds it from the documents", folder, ", ".join(damaged))
        return None

"""The engine that ships: SQLite is the truth, tantivy and the bits of the vectors are derived from it."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from capr.documents import CaprError, Document
from capr.index.derived import STATE, DamagedError
from capr.index.filters import ENTITY, Filters
from capr.index.lock import held, writer_lock
from capr.index.postings import Postings
from capr.index.protocol import (
    EVERYTHING,
    Clause,
    EncoderIdentity,
    Found,
    Grain,
    Patient,
    Sentences,
    Stats,
    Stored,
    Vector,
)
from capr.index.store import Store
from capr.index.vectors import FOLDERS, Vectors
from capr.index.words import Words, asks, stem
from capr.index.writer import EmbeddedWriter

log = logging.getLogger("capr")
CHECKED = 64_000_000  # bytes of a derived index whose checksums are compared whenever it is opened
# A filter that leaves a smaller share is applied by the index of words itself; one of many values is slow there.
NARROW, NARROW_OF_MANY, MANY = 0.15, 0.02, 50
DEEP = 10_000  # passages, after which all that have the words are looked up
LISTED = 5000  # passages that must (not) have some words, and are looked up beforehand if they are no more
AGAIN = 1.0  # seconds after which a reader that is behind tries again to bring the derived indexes up to date
ATTEMPTS = 5  # to open a derived index beside a writer before it counts as damaged
PATIENCE = 2.0  # seconds that a writer waits for a reader that brings the derived indexes up to date
DERIVED = ("words", *FOLDERS.values())
# What gives the passages of a grain the vectors that they lack.
MISSING = {
    Grain.PASSAGES: "{} passages have no vector yet. Fix: capr encode {}.",
    Grain.SENTENCES: "the sentences of {} passages have no vectors yet. Fix: capr encode {}.",
}
Answer = TypeVar("Answer")


class OtherModelError(CaprError):
    """The vectors are of another model than the one that asks: they were exchanged meanwhile."""

    def __init__(self, known: str) -> None:
        fix = "search again, and if you name a model, name that one"
        super().__init__(f"the vectors of the library are now made by another model, {known}. Fix: {fix}.")


@dataclass(frozen=True)
class View:
    """The derived indexes in one state."""

    generation: int
    words: Words
    vectors: Mapping[Grain, Vectors]
    postings: Postings
    behind: bool
    stamp: tuple[int, ...]
    opened: float


class EmbeddedIndex:
    """A folder that keeps documents and finds passages; see `Index`."""

    def __init__(self, folder: Path, create: bool = False) -> None:
        if create:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise CaprError(f"{folder} cannot be made ({error.strerror}). Fix: name another folder.") from error
        if not folder.is_dir():
            raise CaprError(f"there is no library {folder}. Fix: make one with capr index {folder} FILE...")
        self.folder = folder
        self.store = Store(folder, create)
        self._changing = threading.Lock()
        self._view: View | None = None

    def close(self) -> None:
        self._view = None
        self.store.close()

    # --- writing ---

    @contextmanager
    def writing(self) -> Iterator[EmbeddedWriter]:
        with self._writing(PATIENCE) as writer:
            yield writer

    @contextmanager
    def _writing(self, wait: float, fresh: Collection[str] = ()) -> Iterator[EmbeddedWriter]:
        with writer_lock(self.folder, wait), self.store.errors():
            writer = EmbeddedWriter(self, fresh)
            try:
                writer.catch_up()  # with what a process has left that was killed
                yield writer
            finally:
                writer.close()

    # --- finding ---

    def view(self) -> View:
        """The derived indexes as they are now; brought up to date first, if no other process is about to do so."""
        with self.store.errors():
            generation = self.store.generation()
            view = self._view
            if view is not None and view.generation == generation and not self._stale(view):
                return view
            with self._changing:
                view = self._view
                if view is None or view.generation < generation or self._stale(view):
                    view = self._view = self._opened(generation)
                return view

    def _stale(self, view: View) -> bool:
        """Whether a view that was behind may not be so any more."""
        return view.behind and (view.stamp != self._stamp() or time.monotonic() > view.opened + AGAIN)

    def _stamp(self) -> tuple[int, ...]:
        """It changes with the states of the derived indexes."""
        found = []
        for name in DERIVED:
            with suppress(OSError):
                found.append((self.folder / name / STATE).stat().st_mtime_ns)
        return tuple(found)

    def _opened(self, generation: int) -> View:
        stamp = self._stamp()
        words, vectors = self.words(), self._every_vectors()
        if self._behind(words, vectors):
            try:
                with self._writing(0 if words else PATIENCE):
                    pass
            except CaprError as error:  # a writer is at work and will do it, or nobody may
                log.debug("the derived indexes of %s are behind: %s", self.folder, error)
            stamp = self._stamp()
            words, vectors = self.words(), self._every_vectors()
        if words is None and self._view is not None:
            words = self._view.words  # it is being made again; what was opened can still be read
        if words is None:
            fix = "give this user the right to write there, check the disk, or wait for the process that writes"
            raise CaprError(f"{self.folder / 'words'} is not there and cannot be made now. Fix: {fix}.")
        vectors = {grain: one for grain, one in vectors.items() if one.state.source == self.store.source(grain)}
        behind = self._behind(words, vectors)
        return View(generation, words, vectors, Postings(self.store), behind, stamp, time.monotonic())

    def _every_vectors(self) -> dict[Grain, Vectors]:
        """The indexes of vectors that are there and sound."""
        opened = ((grain, self.vectors(grain)) for grain in self.store.grains())
        return {grain: found for grain, found in opened if found is not None}

    def _behind(self, words: Words | None, vectors: Mapping[Grain, Vectors]) -> bool:
        if words is None or (words.through, words.removed) != self.store.last():
            return True
        for grain in self.store.grains():
            state = vectors[grain].state if grain in vectors else None
            if state is None or (state.through, state.source) != (
                self.store.last_vector(grain),
                self.store.source(grain),
            ):
                return True
        return False

    def words(self, level: int = logging.DEBUG) -> Words | None:
        """The index of words, if it is there and sound; damage is told at some level."""
        found: Words | None = self._sound("words", Words, level)
        return found

    def vectors(self, grain: Grain, level: int = logging.DEBUG) -> Vectors | None:
        """The index of the vectors of a grain, likewise."""
        found: Vectors | None = self._sound(FOLDERS[grain], Vectors, level)
        return found

    def _sound(self, name: str, kind: type[Any], level: int) -> Any:
        """A derived index, or None if it is not there or damaged, which is told at some level."""
        folder = self.folder / name
        for _ in range(ATTEMPTS):
            if not (folder / STATE).exists():
                return None
            try:
                found = kind(folder)
                damaged = found.damaged() if found.size() <= CHECKED else []
            except DamagedError as error:
                damaged = [str(error)]
            if not damaged:
                return found
            if not held(self.folder):
                break
            time.sleep(0.05)  # a writer may have exchanged files just now
        log.log(level, "%s is damaged (%s); it is made again from the documents", folder, ", ".join(damaged))
        return None

    def rebuild(self, *names: str) -> None:
        """Makes derived indexes (`words`, `vectors`, `sentences`) again from the documents."""
        with self._writing(PATIENCE, names):
            pass
        self._view = None

    def compact(self) -> int:
        """Frees the room of what was removed, and gives how many bytes that was."""
        before = sum(self.disk().values())
        with self._writing(PATIENCE) as writer:  # the derived indexes have forgotten what was removed
            with self.store.changing():
                self.store.compact_removed()
            self.store.database.execute("VACUUM")
            self.store.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            writer.make_again(*DERIVED)
        self._view = None
        return before - sum(self.disk().values())

    def _healing(self, search: Callable[[View], Answer]) -> Answer:
        """What a search gives; after the index of words was made again, if it proves to be damaged."""
        try:
            return search(self.view())
        except DamagedError as error:
            log.warning("%s is damaged (%s); it is made again", self.folder / "words", error)
            self.rebuild("words")
        try:
            return search(self.view())
        except DamagedError as error:
            fix = "run capr verify --repair, and check the disk"
            raise CaprError(f"{self.folder / 'words'} cannot be read ({error}). Fix: {fix}.") from error

    def lexical(self, clauses: Sequence[Clause], k: int, filters: Filters) -> list[Found]:
        return self._healing(lambda view: self._lexical(view, clauses, k, filters))

    def _lexical(self, view: View, clauses: Sequence[Clause], k: int, filters: Filters) -> list[Found]:
        allowed, passing = self._allowed(view, filters)
        if not passing:
            return []
        values = sum(len(condition.values) for condition in filters.conditions)
        if passing < (NARROW if values <= MANY else NARROW_OF_MANY) * view.postings.passages:
            return view.words.search(clauses, k, filters, allowed)
        limit = int(1.2 * k * view.postings.passages / passing) if filters else k
        return view.words.search(clauses, k, None, allowed, limit)

    def dense(
        self,
        vector: Vector,
        k: int,
        filters: Filters,
        clauses: Sequence[Clause] = (),
        grain: Grain = Grain.PASSAGES,
    ) -> list[Found]:
        return self._healing(lambda view: self._dense(view, vector, k, filters, clauses, grain))

    def _dense(
        self, view: View, vector: Vector, k: int, filters: Filters, clauses: Sequence[Clause], grain: Grain
    ) -> list[Found]:
        vectors = view.vectors.get(grain)
        if vectors is None or not len(vectors):
            return []
        if len(vector) != vectors.state.dimensions:
            raise OtherModelError(f"which has {vectors.state.dimensions} dimensions")
        allowed, passing = self._allowed(view, filters)
        conditions = [clause for clause in clauses if clause.occur != "should" and asks(clause)]
        if not conditions:
            return vectors.search(vector, k, allowed, bool(filters)) if passing else []
        allowed = self._with_words(view, conditions, allowed, LISTED)
        limit = k
        while True:
            nearest = vectors.search(vector, limit, allowed, True)
            passed = view.words.among(conditions, [f.number for f in nearest])
            best = [f for f in nearest if f.number in passed]
            if len(best) >= k or len(nearest) < limit:
                return best[:k]
            limit *= 4
            if limit > DEEP:
                allowed = self._with_words(view, conditions, allowed, len(view.words))

    def _with_words(self, view: View, conditions: Sequence[Clause], allowed: Any, most: int) -> Any:
        """What is allowed and has what it must (not) have; unchanged, if more than so many passages have the words."""
        must = [clause for clause in conditions if clause.occur == "must"]
        lists = [(must, True)] if must else []
        lists += [([replace(clause, occur="must")], False) for clause in conditions if clause.occur == "not"]
        for clauses, wanted in lists:
            found = [f.number for f in view.words.search(clauses, most + 1) if f.number < len(allowed)]
            if len(found) <= most:
                having = np.zeros_like(allowed)
                having[found] = True
                allowed = allowed & (having if wanted else ~having)
        return allowed

    def _allowed(self, view: View, filters: Filters) -> tuple[Any, int]:
        """By number, whether a passage may be found; and how many may."""
        with self.store.errors():
            return view.postings.allowed(self.store, filters)

    def rarity(self, words: Sequence[str], filters: Filters = EVERYTHING) -> list[float]:
        return self._healing(lambda view: self._rarity(view, words, filters))

    def _rarity(self, view: View, words: Sequence[str], filters: Filters) -> list[float]:
        counts = [view.words.frequency(word, filters) for word in words]
        if not filters and view.postings.passages < len(view.postings.alive) - 1:  # what was removed may be counted
            counts = [count if view.words.has(word) else 0 for word, count in zip(words, counts, strict=True)]
        total = max(self._allowed(view, filters)[1] if filters else len(view.words), *counts, 0)
        return [math.log(1 + (total - count + 0.5) / (count + 0.5)) if count else 0.0 for count in counts]

    def stems(self, words: Sequence[str]) -> list[str]:
        return [stem(word) for word in words]

    # --- what is there ---

    def digests(self, ids: Sequence[str]) -> Mapping[str, bytes]:
        with self.store.errors():
            return self.store.digests(ids)

    def vectors_of(self, content: bytes) -> Sequence[Vector] | None:
        return self.store.vectors_of(content)

    def sentences_of(self, content: bytes) -> Sequence[Sentences] | None:
        return self.store.sentences_of(content)

    def passages(self, numbers: Sequence[int]) -> Mapping[int, Stored]:
        return self.store.passages(list(numbers))

    def passages_in(self, id: str) -> list[Stored]:
        return self._listed(lambda: self.store.passages_in(id))

    def sentences(self, numbers: Sequence[int]) -> Mapping[int, Sentences]:
        return self.store.sentences(list(numbers))

    def groups(self, numbers: Sequence[int], by: str) -> Mapping[int, str]:
        with self.store.errors():
            return self.store.groups(list(numbers), by)

    def neighbours(self, number: int, distance: int) -> list[Stored]:
        return self._listed(lambda: self.store.neighbours(number, distance))

    def without_vectors(self, limit: int, after: int = 0, grain: Grain = Grain.PASSAGES) -> list[Stored]:
        return self._listed(lambda: self.store.without_vectors(limit, after, grain))

    def _listed(self, find: Callable[[], list[int]]) -> list[Stored]:
        """The passages whose numbers are found, in that order and one state."""
        with self.store.reading():
            numbers = find()
            found = self.store.passages(numbers)
        return [found[number] for number in numbers]

    def document(self, id: str) -> Document | None:
        return self.store.document(id)

    def documents(self, filters: Filters | None = None) -> Iterator[Document]:
        with self.store.errors():
            wanted = self.ids(filters) if filters else self.store.all_ids()
        for id in wanted:
            document = self.store.document(id)
            if document is not None:
                yield document

    def ids(self, filters: Filters) -> list[str]:
        with self.store.errors():
            return self.view().postings.ids(self.store, filters)

    def has(self, name: str) -> bool:
        with self.store.errors():
            return self.store.has(name)

    def values(self, name: str, limit: int, filters: Filters = EVERYTHING) -> list[tuple[str, int]]:
        with self.store.errors():
            return self.view().postings.values(self.store, name, filters)[:limit]

    def spelled(self, name: str, values: Sequence[str], filters: Filters = EVERYTHING) -> dict[str, str]:
        with self.store.errors():
            first = self.view().postings.first(self.store, name, filters)
            return self.store.spelled(name, {value: first[value] for value in values if value in first})

    def patients(self, filters: Filters = EVERYTHING) -> list[Patient]:
        with self.store.errors():
            return [Patient(*row) for row in self.view().postings.patients(self.store, filters)]

    def mentioned(self, filters: Filters = EVERYTHING) -> set[str]:
        with self.store.errors():
            values = self.view().postings.having(self.store, ENTITY, filters)
        return {value.rpartition(" ")[0] for value in values}

    def passing(self, numbers: Sequence[int], filters: Filters) -> set[int]:
        allowed, _ = self._allowed(self.view(), filters)
        return {number for number in numbers if 0 <= number < len(allowed) and allowed[number]}

    def notices(self, grain: Grain = Grain.PASSAGES, filters: Filters = EVERYTHING) -> list[str]:
        view = self.view()
        found = []
        if view.behind:
            told = "whoever may write there brings it up to date"
            found.append(f"the newest documents of {self.folder} cannot be found yet; {told}")
        vectors = view.vectors.get(grain)
        allowed, passing = self._allowed(view, filters)
        without = passing - (vectors.among(allowed) if filters else len(vectors)) if vectors else 0
        if without > 0:
            found.append(MISSING[grain].format(f"{without:,}", self.folder))
        return found

    def encoder(self, grain: Grain = Grain.PASSAGES) -> EncoderIdentity | None:
        with self.store.errors():
            return self.store.encoder(grain)

    def stats(self, filters: Filters = EVERYTHING) -> Stats:
        if not filters:
            with self.store.reading():
                return Stats(**self.store.counts(), disk=self.disk())
        with self.store.errors():
            documents = self.view().postings.documents(self.store, filters)
        with self.store.reading():
            return Stats(**self.store.counts_of(documents), disk={})

    def disk(self) -> dict[str, int]:
        """Bytes of each part."""
        parts = {"documents": self.folder.glob("library.db*")}
        parts |= {name: (self.folder / name).glob("*") for name in DERIVED if (self.folder / name).is_dir()}
        found = dict.fromkeys(parts, 0)
        for name, files in parts.items():
            for file in files:
                with suppress(FileNotFoundError):  # a writer has taken it away
                    found[name] += file.stat().st_size
        return found

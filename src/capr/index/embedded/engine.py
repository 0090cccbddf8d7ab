"""The embedded engine: SQLite stores the documents; the word and vector indexes are derived from it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from capr.documents import CaprError, Document
from capr.documents.quantity import quantity
from capr.index.embedded import queries, verify, views
from capr.index.embedded.derived import DamagedError, Match
from capr.index.embedded.lock import writer_lock
from capr.index.embedded.space_names import WORDS, derived
from capr.index.embedded.store import Store
from capr.index.embedded.views import View, Views
from capr.index.embedded.writer import EmbeddedWriter
from capr.index.engines import not_a_library
from capr.index.filters import ENTITY, Filters
from capr.index.protocol import EVERYTHING, Index, Progress
from capr.index.records import (
    Clause,
    PassageKey,
    PassageMatch,
    PassageVectors,
    Patient,
    SpanVectors,
    Stats,
    StoredPassage,
    Verification,
)
from capr.index.spaces import PASSAGES, PIECES, SENTENCES, Space
from capr.runtime.identity import EncoderIdentity, Vector
from capr.segment import Cutting
from capr.text.stemming import stem

log = logging.getLogger("capr")
Result = TypeVar("Result")


def open_folder(location: str, create: bool) -> Index:
    """Open the index in a folder."""
    return EmbeddedIndex(Path(location), create)


class EmbeddedIndex:
    """An index in a folder; see `Index` and `Maintained`.

    Internally, passages are numbered in the order in which they were added. A number is never reused; `order` is that
    number.
    """

    def __init__(self, folder: Path, create: bool = False) -> None:
        if create:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise CaprError(f"{folder} cannot be created ({error.strerror}). Fix: name another folder.") from error
        if not folder.is_dir():
            raise not_a_library(folder)
        self.folder = folder
        self.store = Store(folder, create)
        self.views = Views(self.store, self._catch_up)

    def close(self) -> None:
        self.views.forget()
        self.store.close()

    def view(self) -> View:
        """Return the current derived indexes."""
        return self.views.view()

    # --- writing ---

    @contextmanager
    def writing(self) -> Iterator[EmbeddedWriter]:
        with self._writing(views.LOCK_WAIT) as writer:
            yield writer

    @contextmanager
    def _writing(self, wait: float, fresh: Collection[str] = ()) -> Iterator[EmbeddedWriter]:
        with writer_lock(self.folder, wait), self.store.errors():
            writer = EmbeddedWriter(self.store, self.views, fresh)
            try:
                writer.catch_up()  # index the documents that a killed process committed
                yield writer
            finally:
                writer.close()

    def _catch_up(self, wait: float) -> None:
        with self._writing(wait):
            pass

    # --- search ---

    def _run(self, search: Callable[[View], Result]) -> Result:
        """Run a search; if it finds the word index damaged, rebuild the index and run the search again."""
        try:
            return self._try(search)
        except DamagedError as error:
            log.warning("%s is damaged (%s); capr rebuilds it from the documents", self.folder / WORDS, error)
            self.rebuild(WORDS)
        try:
            return self._try(search)
        except DamagedError as error:
            fix = "run capr verify --repair, and check the disk"
            raise CaprError(f"{self.folder / WORDS} cannot be read ({error}). Fix: {fix}.") from error

    def _try(self, search: Callable[[View], Result]) -> Result:
        view = self.view()
        with self.store.errors():
            return search(view)

    def lexical(self, clauses: Sequence[Clause], k: int, filters: Filters) -> list[PassageMatch]:
        return self._with_keys(self._run(lambda view: queries.lexical(view, self.store, clauses, k, filters)))

    def dense(
        self,
        vector: Vector,
        k: int,
        filters: Filters,
        clauses: Sequence[Clause] = (),
        space: Space = PASSAGES,
    ) -> list[PassageMatch]:
        matches = self._run(lambda view: queries.dense(view, self.store, vector, k, filters, clauses, space))
        return self._with_keys(matches)

    def _with_keys(self, matches: Sequence[Match]) -> list[PassageMatch]:
        """Return matches with their keys, except passages that have been removed since the search."""
        with self.store.errors():
            keys = self.store.keys([match.number for match in matches])
        return [PassageMatch(key, score, number) for number, score in matches if (key := keys.get(number))]

    def rarity(self, words: Sequence[str], filters: Filters = EVERYTHING) -> list[float]:
        return self._run(lambda view: queries.rarity(view, self.store, words, filters))

    def stems(self, words: Sequence[str]) -> list[str]:
        return [stem(word) for word in words]

    # --- documents ---

    def _passing(self, ids: Sequence[str], filters: Filters) -> list[str]:
        """Return the ids of the documents that match the filters. Read these documents in the same `_state`."""
        if not filters:
            return list(ids)
        numbers = self.store.numbers_of_documents(ids)
        passing = self.view().postings.passing(self.store, numbers.values(), filters)
        return [id for id in ids if numbers.get(id) in passing]

    def digests(self, ids: Sequence[str], filters: Filters = EVERYTHING) -> Mapping[str, bytes]:
        with self._state(filters):
            return self.store.digests(self._passing(ids, filters))

    def document(self, id: str, filters: Filters = EVERYTHING) -> Document | None:
        with self._state(filters):
            return self.store.document(id) if self._passing([id], filters) else None

    def documents(self, filters: Filters = EVERYTHING) -> Iterator[Document]:
        with self.store.errors():
            ids = self.ids(filters) if filters else self.store.all_ids()
        for id in ids:
            document = self.document(id, filters)
            if document is not None:
                yield document

    def ids(self, filters: Filters) -> list[str]:
        with self.store.errors():
            return self.view().postings.ids(self.store, filters)

    def patients_of(self, ids: Sequence[str]) -> dict[str, str]:
        with self.store.errors():
            return self.store.patients_of(ids)

    # --- passages ---

    @contextmanager
    def _state(self, filters: Filters) -> Iterator[None]:
        """Read one state of the documents, at least as new as the view that evaluates the filters."""
        if filters:
            self.view()  # before the read transaction, because it may have to write
        with self.store.reading():
            yield

    def _numbers(self, numbers: Mapping[PassageKey, int], filters: Filters) -> list[int]:
        """Return the numbers of the passages that match the filters.

        A replaced document gets new numbers, so a number identifies one version of a passage.
        """
        if not filters:
            return list(numbers.values())
        allowed, _ = self.view().postings.allowed(self.store, filters)
        return [number for number in numbers.values() if number < len(allowed) and allowed[number]]

    def passages(self, keys: Sequence[PassageKey], filters: Filters = EVERYTHING) -> Mapping[PassageKey, StoredPassage]:
        with self._state(filters):
            return self._stored(self._numbers(self.store.numbers(keys), filters))

    def passages_in(self, id: str, filters: Filters = EVERYTHING) -> list[StoredPassage]:
        with self._state(filters):
            numbers = {PassageKey(id, index): number for index, number in enumerate(self.store.passages_in(id))}
            return list(self._stored(self._numbers(numbers, filters)).values())

    def _stored(self, numbers: Sequence[int]) -> dict[PassageKey, StoredPassage]:
        """Return passages by key, in the order of their numbers in the argument."""
        by_number = self.store.passages(numbers)
        passages = (by_number[number] for number in numbers if number in by_number)
        return {passage.key: passage for passage in passages}

    # --- vectors ---

    def vectors_of(self, content: bytes, space: Space = PASSAGES) -> Sequence[PassageVectors] | None:
        return self.store.vectors_of(content, space)

    def span_vectors(
        self, keys: Sequence[PassageKey], space: Space = SENTENCES, filters: Filters = EVERYTHING
    ) -> Mapping[PassageKey, SpanVectors]:
        with self._state(filters):
            numbers = self.store.numbers(keys)
            vectors = self.store.span_vectors(self._numbers(numbers, filters), space)
        return {key: vectors[number] for key, number in numbers.items() if number in vectors}

    def codes(
        self, keys: Sequence[PassageKey], space: Space = PIECES, filters: Filters = EVERYTHING
    ) -> Mapping[PassageKey, bytes]:
        with self._state(filters):
            numbers = self.store.numbers(keys)
            codes = self.store.packed_codes(self._numbers(numbers, filters), space)
        return {key: codes[number] for key, number in numbers.items() if number in codes}

    def without_vectors(
        self, limit: int, after: PassageKey | None = None, space: Space = PASSAGES
    ) -> list[StoredPassage]:
        with self.store.reading():
            last = self.store.numbers([after]).get(after, 0) if after is not None else 0
            return list(self._stored(self.store.without_vectors(limit, last, space)).values())

    # --- contents ---

    def has(self, name: str) -> bool:
        with self.store.errors():
            return self.store.has(name)

    def values(self, name: str, limit: int, filters: Filters = EVERYTHING) -> list[tuple[str, int]]:
        with self.store.errors():
            return self.view().postings.values(self.store, name, filters)[:limit]

    def display_values(self, name: str, values: Sequence[str], filters: Filters = EVERYTHING) -> dict[str, str]:
        with self.store.errors():
            first = self.view().postings.first(self.store, name, filters)
            return self.store.display_values(name, {value: first[value] for value in values if value in first})

    def patients(self, filters: Filters = EVERYTHING) -> list[Patient]:
        with self.store.errors():
            return [Patient(*row) for row in self.view().postings.patients(self.store, filters)]

    def mentioned_codes(self, filters: Filters = EVERYTHING) -> set[str]:
        with self.store.errors():
            values = self.view().postings.having(self.store, ENTITY, filters)
        return {value.rpartition(" ")[0] for value in values}

    def notices(self, space: Space = PASSAGES, filters: Filters = EVERYTHING) -> list[str]:
        view = self.view()
        notices = []
        if view.behind:
            remedy = "the next process that can write there updates the index"
            notices.append(f"the newest documents of {self.folder} cannot be found yet; {remedy}")
        vectors = view.vectors.get(space)
        with self.store.errors():
            if space.is_packed:
                known = space in self.store.spaces() and not filters
                without = view.postings.passages - self.store.count_codes(space) if known else 0
            else:
                allowed, passing = view.postings.allowed(self.store, filters)
                without = passing - (vectors.among(allowed) if filters else len(vectors)) if vectors else 0
        if without > 0:
            notices.append(space.missing.format(quantity(without, "passage"), self.folder))
        return notices

    def encoder(self, space: Space = PASSAGES) -> EncoderIdentity | None:
        with self.store.errors():
            return self.store.encoder(space)

    def cuttings(self) -> list[Cutting]:
        with self.store.errors():
            return self.store.cuttings()

    def stats(self, filters: Filters = EVERYTHING) -> Stats:
        if not filters:
            with self.store.reading():
                return Stats(**self.store.counts(), disk=self.disk())
        with self.store.errors():
            documents = self.view().postings.documents(self.store, filters)
        with self.store.reading():
            return Stats(**self.store.counts_of(documents), disk={})

    # --- maintenance ---

    def verify(self, repair: bool = False, on_progress: Progress | None = None) -> Verification:
        return verify.verify(self, repair, on_progress)

    def rebuild(self, *names: str) -> None:
        """Rebuild derived indexes (`words`, `vectors`, `sentences`) from the documents."""
        with self._writing(views.LOCK_WAIT, names):
            pass
        self.views.forget()

    def compact(self) -> int:
        before = sum(self.disk().values())
        with self._writing(views.LOCK_WAIT) as writer:  # which first removes the passages from the derived indexes
            with self.store.changing():
                self.store.compact_removed()
            self.store.database.execute("VACUUM")
            self.store.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            writer.rebuild(*derived())
        self.views.forget()
        return before - sum(self.disk().values())

    def disk(self) -> dict[str, int]:
        parts: dict[str, Any] = {"documents": self.folder.glob("library.db*")}
        parts |= {name: (self.folder / name).glob("*") for name in derived() if (self.folder / name).is_dir()}
        sizes = dict.fromkeys(parts, 0)
        for name, files in parts.items():
            for file in files:
                with suppress(FileNotFoundError):  # a writer has deleted it
                    sizes[name] += file.stat().st_size
        return sizes

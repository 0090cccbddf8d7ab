"""The vectors of the truth: a table for each grain, with the model that made what is in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from capr.documents import CaprError
from capr.index.database import Database, marks, parts
from capr.index.protocol import EncoderIdentity, Grain, Sentences, Vector
from capr.index.sentences import RECORD, SUM, meant, packed, unpacked
from capr.index.vectors import decoded, encoded

TABLES = {Grain.PASSAGES: "vector", Grain.SENTENCES: "sentence"}
MODELS = {Grain.PASSAGES: "encoder", Grain.SENTENCES: "discourse"}  # under which the table `meta` has them
EXCHANGED = {Grain.PASSAGES: "exchanged", Grain.SENTENCES: "exchanged sentences"}


class VectorTables(Database):
    """Vectors by the numbers of passages, and all that is known of them."""

    # --- what is there ---

    def encoder(self, grain: Grain = Grain.PASSAGES) -> EncoderIdentity | None:
        found = self.meta(MODELS[grain])
        return EncoderIdentity(**json.loads(found)) if found else None

    def dimensions(self, grain: Grain) -> int:
        """Of the vectors of a grain; 0 if it has no model. Read it once for many codes."""
        encoder = self.encoder(grain)
        return encoder.dimensions if encoder else 0

    def grains(self) -> list[Grain]:
        """Those that have a model. Others may lack their table, in a library that is older than the grain."""
        return [grain for grain in Grain if self.meta(MODELS[grain])]

    def source(self, grain: Grain) -> str:
        """It changes when vectors that were there are not valid any more."""
        encoder = self.encoder(grain)
        return f"{encoder.digest if encoder else ''}:{self.meta(EXCHANGED[grain]) or 0}"

    def last_vector(self, grain: Grain) -> int:
        """The last sequence number of a vector."""
        return self._sequence(TABLES[grain])

    def _sequence(self, table: str) -> int:
        row = self.database.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
        return int(row[0]) if row else 0

    def without_vectors(self, limit: int, after: int, grain: Grain) -> list[int]:
        known = f"EXISTS (SELECT 1 FROM {TABLES[grain]} AS known WHERE known.passage = passage.number)"
        query = (
            f"SELECT number FROM passage WHERE number > ? AND NOT {known if grain in self.grains() else 'FALSE'} "
            "ORDER BY number LIMIT ?"
        )
        return [row[0] for row in self.database.execute(query, (after, limit))]

    def vectors_of(self, content: bytes) -> list[Vector] | None:
        codes = self._codes_of(content, Grain.PASSAGES)
        return None if codes is None else [decoded(code) for code in codes]

    def sentences_of(self, content: bytes) -> list[Sentences] | None:
        codes = self._codes_of(content, Grain.SENTENCES)
        if codes is None:
            return None
        dimensions = self.dimensions(Grain.SENTENCES)
        return [self._sentences(code, dimensions) for code in codes]

    def _codes_of(self, content: bytes, grain: Grain) -> list[bytes] | None:
        """Of the passages of a document with that content, all of which have them."""
        with self.reading() as database:
            if grain not in self.grains():
                return None
            query = "SELECT first, passages FROM document WHERE content = ?"
            for first, count in database.execute(query, (content,)).fetchall():
                query = f"SELECT code FROM {TABLES[grain]} WHERE passage BETWEEN ? AND ? ORDER BY passage"
                codes = [code for (code,) in database.execute(query, (first, first + count - 1))]
                if len(codes) == count:
                    return codes
        return None

    def sentences(self, numbers: Sequence[int]) -> dict[int, Sentences]:
        found: dict[int, Sentences] = {}
        with self.reading() as database:
            dimensions = self.dimensions(Grain.SENTENCES)
            for some in parts(numbers) if dimensions else ():
                query = f"SELECT passage, code FROM sentence WHERE passage IN ({marks(some)})"
                rows = database.execute(query, some)
                found.update((number, self._sentences(code, dimensions)) for number, code in rows)
        return found

    def _sentences(self, code: bytes, dimensions: int) -> Sentences:
        try:
            return unpacked(code, dimensions)
        except ValueError as error:
            fix = "capr verify --repair, which drops them, and then capr encode, which makes them again"
            raise CaprError(f"{self.file} is damaged ({error}). Fix: {fix}.") from error

    def codes_since(self, grain: Grain, sequence: int, limit: int) -> list[tuple[int, int, bytes]]:
        """Sequence number, passage and code of vectors, as their index holds them."""
        query = f"SELECT sequence, passage, code FROM {TABLES[grain]} WHERE sequence > ? ORDER BY sequence LIMIT ?"
        rows = self.database.execute(query, (sequence, limit)).fetchall()
        dimensions = self.dimensions(grain)
        return [(number, passage, self.indexed(grain, code, dimensions)) for number, passage, code in rows]

    def codes(self, grain: Grain) -> Iterator[tuple[int, bytes]]:
        """All passages that have vectors, with their codes."""
        if grain in self.grains():
            yield from self.database.execute(f"SELECT passage, code FROM {TABLES[grain]}")

    def indexed(self, grain: Grain, code: bytes, dimensions: int) -> bytes:
        """A code as the index of vectors holds it; one that cannot be read is there, and never found."""
        never = bytes(4 + dimensions)
        if grain is Grain.PASSAGES:
            return code if len(code) == len(never) else never
        try:
            return meant(code, dimensions)
        except ValueError:
            return never

    def unknown(self, grain: Grain) -> int:
        """How many vectors of a grain are there, of which nobody can tell what model made them."""
        if (
            grain in self.grains()
            or not self.database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (TABLES[grain],)).fetchone()
        ):
            return 0
        return int(self.database.execute(f"SELECT COUNT(*) FROM {TABLES[grain]}").fetchone()[0])

    def vectors_in(self, documents: Sequence[int]) -> int:
        """How many passages of some documents have a vector."""
        return self._coded(Grain.PASSAGES, documents)[0] if self.encoder() is not None else 0

    def sentence_counts(self, documents: Sequence[int] | None = None) -> dict[str, Any]:
        """What `Stats` says of sentences; of all, or of those of some documents."""
        discourse = self.encoder(Grain.SENTENCES)
        passages = sentences = 0
        if discourse is not None:
            passages, size = self._coded(Grain.SENTENCES, documents)
            sentences = (size - SUM * passages) // (RECORD + discourse.dimensions)
        return {"sentences": sentences, "passages_with_sentences": passages, "discourse": discourse}

    def _coded(self, grain: Grain, documents: Sequence[int] | None) -> tuple[int, int]:
        """How many passages have a code, and how long all of these are."""
        query = f"SELECT COUNT(*), TOTAL(LENGTH(code)) FROM {TABLES[grain]}"
        if documents is None:
            count, size = self.database.execute(query).fetchone()
            return count, int(size)
        total = [0, 0]
        for some in parts(documents):
            extents = self.database.execute(
                f"SELECT first, first + passages - 1 FROM document WHERE number IN ({marks(some)})", some
            ).fetchall()
            for extent in extents:
                found = self.database.execute(f"{query} WHERE passage BETWEEN ? AND ?", extent).fetchone()
                total = [known + int(new) for known, new in zip(total, found, strict=True)]
        return total[0], total[1]

    # --- changes, all within `changing` ---

    def set_encoder(self, encoder: EncoderIdentity, grain: Grain) -> None:
        known = self.encoder(grain)
        if known is None or known.digest != encoder.digest:
            columns = "sequence INTEGER PRIMARY KEY AUTOINCREMENT, passage INTEGER NOT NULL UNIQUE, code BLOB NOT NULL"
            self.database.execute(f"CREATE TABLE IF NOT EXISTS {TABLES[grain]} ({columns})")
            self.database.execute(f"DELETE FROM {TABLES[grain]}")
            self._exchange(grain)
        identity = {name: getattr(encoder, name) for name in encoder.__slots__}
        self.set_meta(MODELS[grain], json.dumps(identity))

    def _exchange(self, grain: Grain) -> None:
        """Tells the index of vectors that it has to begin anew."""
        self.set_meta(EXCHANGED[grain], str(int(self.meta(EXCHANGED[grain]) or 0) + 1))

    def set_vectors(self, vectors: Mapping[int, Vector]) -> None:
        self._fit(vectors.values(), Grain.PASSAGES)
        self._keep(Grain.PASSAGES, {number: encoded(vector) for number, vector in vectors.items()})

    def set_sentences(self, sentences: Mapping[int, Sentences]) -> None:
        self._fit((one.vectors for one in sentences.values()), Grain.SENTENCES)
        self._keep(Grain.SENTENCES, {number: packed(one) for number, one in sentences.items()})

    def _fit(self, given: Iterable[Vector], grain: Grain) -> None:
        """Complains of vectors that the model of a grain cannot have made."""
        dimensions = self.dimensions(grain)
        for vectors in given:
            if not dimensions or vectors.shape[-1] != dimensions or not np.isfinite(vectors).all():
                fact = f"a vector has {vectors.shape[-1]} dimensions or is not finite"
                wanted = f"and {self.folder} needs {dimensions or 'no'}"
                raise CaprError(f"{fact}, {wanted}. Fix: use an encoder that fits its manifest.")

    def _keep(self, grain: Grain, codes: Mapping[int, bytes]) -> None:
        for some in parts(list(codes)):
            known = f"SELECT 1 FROM {TABLES[grain]} WHERE passage IN ({marks(some)}) LIMIT 1"
            if self.database.execute(known, some).fetchone():
                self._exchange(grain)
        self.database.executemany(f"INSERT OR REPLACE INTO {TABLES[grain]} VALUES (NULL, ?, ?)", codes.items())

    def drop_vectors(self, grain: Grain, numbers: Sequence[int]) -> None:
        """Forgets vectors of passages, so that they can be made again."""
        query = f"DELETE FROM {TABLES[grain]} WHERE passage = ?"
        self.database.executemany(query, [(number,) for number in numbers])
        self._exchange(grain)

"""The vectors of the truth: a table for each space, with the model that made what is in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from capr.documents import CaprError
from capr.index.database import Database, marks, parts
from capr.index.protocol import EncoderIdentity, Sentences, Space, Vector
from capr.index.sentences import RECORD, SUM, meant, packed, unpacked
from capr.index.vectors import decoded, encoded

TABLES = {Space.PASSAGES: "vector", Space.SENTENCES: "sentence"}
MODELS = {Space.PASSAGES: "encoder", Space.SENTENCES: "discourse"}  # under which the table `meta` has them
EXCHANGED = {Space.PASSAGES: "exchanged", Space.SENTENCES: "exchanged sentences"}


class VectorTables(Database):
    """Vectors by the numbers of passages, and all that is known of them."""

    # --- what is there ---

    def encoder(self, space: Space = Space.PASSAGES) -> EncoderIdentity | None:
        found = self.meta(MODELS[space])
        return EncoderIdentity(**json.loads(found)) if found else None

    def spaces(self) -> list[Space]:
        """Those that have a model. Others may lack their table, in a library that is older than the space."""
        return [space for space in Space if self.meta(MODELS[space])]

    def source(self, space: Space) -> str:
        """It changes when vectors that were there are not valid any more."""
        encoder = self.encoder(space)
        return f"{encoder.digest if encoder else ''}:{self.meta(EXCHANGED[space]) or 0}"

    def last_vector(self, space: Space) -> int:
        """The last sequence number of a vector."""
        return self._sequence(TABLES[space])

    def _sequence(self, table: str) -> int:
        row = self.database.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
        return int(row[0]) if row else 0

    def without_vectors(self, limit: int, after: int, space: Space) -> list[int]:
        known = f"EXISTS (SELECT 1 FROM {TABLES[space]} AS known WHERE known.passage = passage.number)"
        query = (
            f"SELECT number FROM passage WHERE number > ? AND NOT {known if space in self.spaces() else 'FALSE'} "
            "ORDER BY number LIMIT ?"
        )
        return [row[0] for row in self.database.execute(query, (after, limit))]

    def vectors_of(self, content: bytes) -> list[Vector] | None:
        codes = self._codes_of(content, Space.PASSAGES)
        return None if codes is None else [decoded(code) for code in codes]

    def sentences_of(self, content: bytes) -> list[Sentences] | None:
        codes = self._codes_of(content, Space.SENTENCES)
        return None if codes is None else [self._sentences(code) for code in codes]

    def _codes_of(self, content: bytes, space: Space) -> list[bytes] | None:
        """Of the passages of a document with that content, all of which have them."""
        with self.reading() as database:
            if space not in self.spaces():
                return None
            query = "SELECT first, passages FROM document WHERE content = ?"
            for first, count in database.execute(query, (content,)).fetchall():
                query = f"SELECT code FROM {TABLES[space]} WHERE passage BETWEEN ? AND ? ORDER BY passage"
                codes = [code for (code,) in database.execute(query, (first, first + count - 1))]
                if len(codes) == count:
                    return codes
        return None

    def sentences(self, numbers: Sequence[int]) -> dict[int, Sentences]:
        found: dict[int, Sentences] = {}
        with self.reading() as database:
            for some in parts(numbers) if Space.SENTENCES in self.spaces() else ():
                query = f"SELECT passage, code FROM sentence WHERE passage IN ({marks(some)})"
                found.update((number, self._sentences(code)) for number, code in database.execute(query, some))
        return found

    def _sentences(self, code: bytes) -> Sentences:
        encoder = self.encoder(Space.SENTENCES)
        try:
            return unpacked(code, encoder.dimensions if encoder else 0)
        except ValueError as error:
            fix = "capr verify --repair, which drops them, and then capr encode, which makes them again"
            raise CaprError(f"{self.file} is damaged ({error}). Fix: {fix}.") from error

    def codes_since(self, space: Space, sequence: int, limit: int) -> list[tuple[int, int, bytes]]:
        """Sequence number, passage and code of vectors, as their index holds them."""
        query = f"SELECT sequence, passage, code FROM {TABLES[space]} WHERE sequence > ? ORDER BY sequence LIMIT ?"
        rows = self.database.execute(query, (sequence, limit)).fetchall()
        return [(number, passage, self.indexed(space, code)) for number, passage, code in rows]

    def codes(self, space: Space) -> Iterator[tuple[int, bytes]]:
        """All passages that have vectors, with their codes."""
        if space in self.spaces():
            yield from self.database.execute(f"SELECT passage, code FROM {TABLES[space]}")

    def indexed(self, space: Space, code: bytes) -> bytes:
        """A code as the index of vectors holds it; one that cannot be read is there, and never found."""
        if space is Space.PASSAGES:
            return code
        encoder = self.encoder(space)
        dimensions = encoder.dimensions if encoder else 0
        try:
            return meant(code, dimensions)
        except ValueError:
            return bytes(4 + dimensions)

    def sentence_counts(self) -> dict[str, Any]:
        """What `Stats` says of sentences."""
        discourse = self.encoder(Space.SENTENCES)
        passages = sentences = 0
        if discourse is not None:
            query = "SELECT COUNT(*), TOTAL(LENGTH(code)) FROM sentence"
            passages, size = self.database.execute(query).fetchone()
            sentences = int(size - SUM * passages) // (RECORD + discourse.dimensions)
        return {"sentences": sentences, "passages_with_sentences": passages, "discourse": discourse}

    # --- changes, all within `changing` ---

    def set_encoder(self, encoder: EncoderIdentity, space: Space) -> None:
        known = self.encoder(space)
        if known is None or known.digest != encoder.digest:
            columns = "sequence INTEGER PRIMARY KEY AUTOINCREMENT, passage INTEGER NOT NULL UNIQUE, code BLOB NOT NULL"
            self.database.execute(f"CREATE TABLE IF NOT EXISTS {TABLES[space]} ({columns})")
            self.database.execute(f"DELETE FROM {TABLES[space]}")
            self._exchange(space)
        identity = {name: getattr(encoder, name) for name in encoder.__slots__}
        self.set_meta(MODELS[space], json.dumps(identity))

    def _exchange(self, space: Space) -> None:
        """Tells the index of vectors that it has to begin anew."""
        self.set_meta(EXCHANGED[space], str(int(self.meta(EXCHANGED[space]) or 0) + 1))

    def set_vectors(self, vectors: Mapping[int, Vector]) -> None:
        for vector in vectors.values():
            self._fits(vector, Space.PASSAGES)
        self._keep(Space.PASSAGES, {number: encoded(vector) for number, vector in vectors.items()})

    def set_sentences(self, sentences: Mapping[int, Sentences]) -> None:
        for one in sentences.values():
            self._fits(one.vectors, Space.SENTENCES)
        self._keep(Space.SENTENCES, {number: packed(one) for number, one in sentences.items()})

    def _fits(self, vectors: Vector, space: Space) -> None:
        """Complains of vectors that the model of a space cannot have made."""
        encoder = self.encoder(space)
        if encoder is None or vectors.shape[-1] != encoder.dimensions or not np.isfinite(vectors).all():
            fact = f"a vector has {vectors.shape[-1]} dimensions or is not finite"
            wanted = encoder.dimensions if encoder else "no"
            raise CaprError(f"{fact}, and {self.folder} needs {wanted}. Fix: use an encoder that fits its manifest.")

    def _keep(self, space: Space, codes: Mapping[int, bytes]) -> None:
        for some in parts(list(codes)):
            known = f"SELECT 1 FROM {TABLES[space]} WHERE passage IN ({marks(some)}) LIMIT 1"
            if self.database.execute(known, some).fetchone():
                self._exchange(space)
        self.database.executemany(f"INSERT OR REPLACE INTO {TABLES[space]} VALUES (NULL, ?, ?)", codes.items())

    def drop_vectors(self, space: Space, numbers: Sequence[int]) -> None:
        """Forgets vectors of passages, so that they can be made again."""
        query = f"DELETE FROM {TABLES[space]} WHERE passage = ?"
        self.database.executemany(query, [(number,) for number in numbers])
        self._exchange(space)

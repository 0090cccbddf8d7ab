"""The vectors in the database: a table for each space, and the model that made its vectors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from capr.documents import CaprError
from capr.index.embedded.database import Database, batches, placeholders
from capr.index.embedded.sentences import RECORD, SUM, mean_code, pack, unpack, with_sum, without_sum
from capr.index.embedded.space_names import names_of
from capr.index.embedded.vectors import decode, encode
from capr.index.records import PassageVectors, SpaceStats, SpanVectors
from capr.index.spaces import PASSAGES, SPACES, Space
from capr.runtime.identity import EncoderIdentity

# By `Space.aggregation`, the type of a passage's vectors, and its description.
FORMS: Mapping[str, tuple[type, str]] = {
    "": (np.ndarray, "one vector"),
    "mean": (SpanVectors, "parts with their spans"),
    "maxsim": (bytes, "a code"),
}


class VectorTables(Database):
    """Vectors by passage number, and the models of the spaces."""

    # --- contents ---

    def encoder(self, space: Space = PASSAGES) -> EncoderIdentity | None:
        identity = self.meta(names_of(space).model)
        return EncoderIdentity(**json.loads(identity)) if identity else None

    def dimensions(self, space: Space) -> int:
        """Return the dimensions of the vectors of a space, 0 if it has no model. Call it once for many codes."""
        encoder = self.encoder(space)
        return encoder.dimensions if encoder else 0

    def spaces(self) -> list[Space]:
        """Return the spaces that have a model. Other spaces may lack a table in an old library."""
        return [space for space in SPACES.values() if self.meta(names_of(space).model)]

    def searched_spaces(self) -> list[Space]:
        """Return the spaces that have a model and a vector index."""
        return [space for space in self.spaces() if not space.is_packed]

    def source(self, space: Space) -> str:
        """Return a text that changes when existing vectors become invalid."""
        encoder = self.encoder(space)
        return f"{encoder.digest if encoder else ''}:{self.meta(names_of(space).exchanged) or 0}"

    def last_vector(self, space: Space) -> int:
        """Return the last sequence number of a vector."""
        return self.sequence(names_of(space).table)

    def without_vectors(self, limit: int, after: int, space: Space) -> list[int]:
        has_vector = f"EXISTS (SELECT 1 FROM {names_of(space).table} AS known WHERE known.passage = passage.number)"
        query = (
            f"SELECT number FROM passage WHERE number > ? AND NOT {has_vector if space in self.spaces() else 'FALSE'} "
            "ORDER BY number LIMIT ?"
        )
        return [row[0] for row in self.database.execute(query, (after, limit))]

    def vectors_of(self, content: bytes, space: Space) -> Sequence[PassageVectors] | None:
        codes = self._codes_of(content, space)
        if codes is None:
            return None
        if not space.aggregation:
            return [decode(code) for code in codes]
        if space.is_packed:
            return [self._checked(code) for code in codes]
        dimensions = self.dimensions(space)
        return [self._unpack(code, dimensions) for code in codes]

    def _codes_of(self, content: bytes, space: Space) -> list[bytes] | None:
        """Return the codes of the passages of a document with that content whose passages all have codes, or None."""
        with self.reading() as database:
            if space not in self.spaces():
                return None
            query = "SELECT first, passages FROM document WHERE content = ?"
            for first, count in database.execute(query, (content,)).fetchall():
                query = f"SELECT code FROM {names_of(space).table} WHERE passage BETWEEN ? AND ? ORDER BY passage"
                codes = [code for (code,) in database.execute(query, (first, first + count - 1))]
                if len(codes) == count:
                    return codes
        return None

    def span_vectors(self, numbers: Sequence[int], space: Space) -> dict[int, SpanVectors]:
        with self.reading():
            dimensions = self.dimensions(space)
            codes = self._stored_codes(numbers, space) if dimensions else ()
            return {number: self._unpack(code, dimensions) for number, code in codes}

    def packed_codes(self, numbers: Sequence[int], space: Space) -> dict[int, bytes]:
        """Return the codes of passages in a packed space."""
        with self.reading():
            codes = self._stored_codes(numbers, space) if self.dimensions(space) else ()
            return {number: self._checked(code) for number, code in codes}

    def _stored_codes(self, numbers: Sequence[int], space: Space) -> Iterator[tuple[int, bytes]]:
        """Yield the codes of passages in a space that has a model."""
        for batch in batches(numbers):
            query = f"SELECT passage, code FROM {names_of(space).table} WHERE passage IN ({placeholders(batch)})"
            yield from self.database.execute(query, batch)

    def _unpack(self, code: bytes, dimensions: int) -> SpanVectors:
        with self._damage():
            return unpack(code, dimensions)

    def _checked(self, code: bytes) -> bytes:
        with self._damage():
            return without_sum(code)

    @contextmanager
    def _damage(self) -> Iterator[None]:
        """Report codes that cannot be read."""
        try:
            yield
        except ValueError as error:
            fix = "run capr verify --repair, which drops them, and then capr encode, which makes new ones"
            raise CaprError(f"{self.file} is damaged ({error}). Fix: {fix}.") from error

    def codes_since(self, space: Space, sequence: int, limit: int) -> list[tuple[int, int, bytes]]:
        """Return sequence number, passage and code of vectors, in the format of the vector index."""
        query = (
            f"SELECT sequence, passage, code FROM {names_of(space).table} WHERE sequence > ? ORDER BY sequence LIMIT ?"
        )
        rows = self.database.execute(query, (sequence, limit)).fetchall()
        dimensions = self.dimensions(space)
        return [(number, passage, self.index_code(space, code, dimensions)) for number, passage, code in rows]

    def codes(self, space: Space) -> Iterator[tuple[int, bytes]]:
        """Yield the passages that have vectors, with their codes."""
        if space in self.spaces():
            yield from self.database.execute(f"SELECT passage, code FROM {names_of(space).table}")

    def count_codes(self, space: Space) -> int:
        """Return the number of passages that have vectors in a space that has a model."""
        return self._code_counts(space, None)[0]

    def index_code(self, space: Space, code: bytes, dimensions: int) -> bytes:
        """Return a code in the format of the vector index; for a damaged code, one that no search finds."""
        unfindable = bytes(4 + dimensions)
        if not space.aggregation:
            return code if len(code) == len(unfindable) else unfindable
        try:
            return mean_code(code, dimensions)
        except ValueError:
            return unfindable

    def unknown(self, space: Space) -> int:
        """Return the number of vectors of a space whose model is not recorded."""
        table = names_of(space).table
        table_exists = self.database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        if space in self.spaces() or not table_exists:
            return 0
        return int(self.database.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])

    def space_stats(self, documents: Sequence[int] | None = None) -> dict[str, SpaceStats]:
        """Return the counts of each space, for all documents or only those."""
        stats = {}
        for space in self.spaces():
            model = self.encoder(space)
            passages, size = self._code_counts(space, documents)
            if space.aggregation and model:
                record = model.dimensions // 2 if space.is_packed else RECORD + model.dimensions
                stats[space.name] = SpaceStats(model, passages, (size - SUM * passages) // record)
            else:
                stats[space.name] = SpaceStats(model, passages, passages)
        return stats

    def _code_counts(self, space: Space, documents: Sequence[int] | None) -> tuple[int, int]:
        """Return the number of codes and their total size in bytes."""
        query = f"SELECT COUNT(*), TOTAL(LENGTH(code)) FROM {names_of(space).table}"
        if documents is None:
            count, size = self.database.execute(query).fetchone()
            return count, int(size)
        total = [0, 0]
        for batch in batches(documents):
            extents = self.database.execute(
                f"SELECT first, first + passages - 1 FROM document WHERE number IN ({placeholders(batch)})", batch
            ).fetchall()
            for extent in extents:
                counts = self.database.execute(f"{query} WHERE passage BETWEEN ? AND ?", extent).fetchone()
                total = [old + int(new) for old, new in zip(total, counts, strict=True)]
        return total[0], total[1]

    # --- changes, all within `changing` ---

    def set_encoder(self, encoder: EncoderIdentity | None, space: Space) -> None:
        current = self.encoder(space)
        if encoder is None:
            if current is not None:
                self.database.execute(f"DELETE FROM {names_of(space).table}")
                self._exchange(space)
                self.set_meta(names_of(space).model, "")
            return
        if current is None or current.digest != encoder.digest:
            columns = "sequence INTEGER PRIMARY KEY AUTOINCREMENT, passage INTEGER NOT NULL UNIQUE, code BLOB NOT NULL"
            self.database.execute(f"CREATE TABLE IF NOT EXISTS {names_of(space).table} ({columns})")
            self.database.execute(f"DELETE FROM {names_of(space).table}")
            self._exchange(space)
        identity = {name: getattr(encoder, name) for name in encoder.__slots__}
        self.set_meta(names_of(space).model, json.dumps(identity))

    def _exchange(self, space: Space) -> None:
        """Tell the vector index that it has to be rebuilt."""
        self.set_meta(names_of(space).exchanged, str(int(self.meta(names_of(space).exchanged) or 0) + 1))

    def set_vectors(self, vectors: Mapping[int, PassageVectors], space: Space) -> None:
        dimensions = self.dimensions(space)
        codes = {number: self._code(passage, space, dimensions) for number, passage in vectors.items()}
        for batch in batches(list(codes)):
            query = f"SELECT 1 FROM {names_of(space).table} WHERE passage IN ({placeholders(batch)}) LIMIT 1"
            if self.database.execute(query, batch).fetchone():
                self._exchange(space)
        self.database.executemany(f"INSERT OR REPLACE INTO {names_of(space).table} VALUES (NULL, ?, ?)", codes.items())

    def _code(self, passage: PassageVectors, space: Space, dimensions: int) -> bytes:
        """Return the code of a passage's vectors; raise an error if the model of the space cannot have made them."""
        form, expected = FORMS[space.aggregation]
        if not isinstance(passage, form):
            raise TypeError(f"a passage has {expected} in the space {space.name!r}")
        if isinstance(passage, bytes):
            if not dimensions or len(passage) % (dimensions // 2):
                fact = f"a code has {len(passage)} bytes, and {self.folder} needs vectors of {dimensions or 'no'}"
                raise CaprError(f"{fact} dimensions in four bits. Fix: use an encoder that fits its manifest.")
            return with_sum(passage)
        vectors = passage.vectors if isinstance(passage, SpanVectors) else passage
        if not dimensions or vectors.shape[-1] != dimensions or not np.isfinite(vectors).all():
            fact = f"a vector has {vectors.shape[-1]} dimensions or is not finite"
            expected = f"and {self.folder} needs {dimensions or 'no'}"
            raise CaprError(f"{fact}, {expected}. Fix: use an encoder that fits its manifest.")
        return pack(passage) if isinstance(passage, SpanVectors) else encode(passage)

    def drop_vectors(self, space: Space, numbers: Sequence[int]) -> None:
        """Delete vectors of passages, so that capr can encode them again."""
        query = f"DELETE FROM {names_of(space).table} WHERE passage = ?"
        self.database.executemany(query, [(number,) for number in numbers])
        self._exchange(space)

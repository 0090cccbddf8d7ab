"""The keys of passages by number: read from the database at first, and from a table after many lookups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from capr.index.embedded.database import Database, batches, placeholders
from capr.index.records import PassageKey

MAX_DOCUMENTS = 200_000  # of a table: about 20 MB


class Keys:
    """Passage keys by number. The table never becomes wrong, because a passage number is never reused."""

    def __init__(self) -> None:
        self._table: Table | None = None
        self._lookups = 0

    def of(self, database: Database, numbers: Sequence[int]) -> dict[int, PassageKey]:
        """Return the keys of the passages that exist; the result may include removed passages."""
        keys = self._table.keys(numbers) if self._table is not None else {}
        if len(keys) == len(numbers):
            return keys
        missing = [number for number in numbers if number not in keys]
        for batch in batches(missing):
            query = (
                "SELECT passage.number, id, first FROM passage JOIN document ON document.number = passage.document "
                f"WHERE passage.number IN ({placeholders(batch)})"
            )
            rows = database.database.execute(query, batch)
            keys.update((number, PassageKey(id, number - first)) for number, id, first in rows)
        self._lookups += len(missing)
        if 2 * self._lookups > (documents := database.sequence("document")):  # reading all documents takes as long
            self._lookups = 0
            if documents <= MAX_DOCUMENTS:
                self._table = Table(database)
        return keys


class Table:
    """The documents that existed when the table was made."""

    def __init__(self, database: Database) -> None:
        query = "SELECT first, first + passages, id FROM document WHERE passages ORDER BY first"
        rows = database.database.execute(query).fetchall()
        self._first = np.array([first for first, _, _ in rows], np.int64)
        self._end = np.array([end for _, end, _ in rows], np.int64)
        self._ids = [id for _, _, id in rows]

    def keys(self, numbers: Sequence[int]) -> dict[int, PassageKey]:
        """Return the keys of the passages of documents in the table."""
        passages = np.array(numbers, np.int64)
        rows = np.searchsorted(self._first, passages, "right") - 1
        known = (rows >= 0) & (passages < self._end[rows]) if len(self._ids) else np.zeros(len(passages), bool)
        rows, passages = rows[known], passages[known]
        indexes = (passages - self._first[rows]).tolist()
        triples = zip(passages.tolist(), rows.tolist(), indexes, strict=True)
        return {number: PassageKey(self._ids[row], index) for number, row, index in triples}

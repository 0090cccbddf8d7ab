"""The desk: jobs, saved searches and feedback, in a small database beside the library that all workers share."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from capr.documents import CaprError, NotThereError, UnavailableError
from capr.serve.problems import ProblemError
from capr.serve.tokens import told

FILE, LOCK = "desk.db", "desk.lock"
PROBLEMS = 100  # of a job that are kept
KEPT = 1000  # jobs
SAVED = 500  # searches of one holder
SHOWN = 1000  # judgements of one query
JUDGED = " AND ".join(f"{name} = ?" for name in ("who", "query", "entity", "aspect", "document", "begin", "end"))
NO_LIMIT = 2**62
ENDED = ("done", "failed", "interrupted")


@dataclass(frozen=True, slots=True)
class Job:
    """Documents that are being added.

    Attributes:
        id: by which it is asked for.
        made: when.
        who: the id of the token that asked for it.
        state: `waiting`, `running`, `done`, `failed` or `interrupted`.
        replace: whether documents with the same id are exchanged.
        total: documents, if that is known.
        done: documents that are kept, or were there, or could not be kept.
        added, replaced, unchanged: what became of them.
        problems: of those that could not be kept, the first ones; and what ended the job.
        more_problems: how many further ones there were.
    """

    id: str
    made: str
    who: str
    state: str
    replace: bool
    total: int | None
    done: int
    added: int
    replaced: int
    unchanged: int
    problems: Sequence[str]
    more_problems: int

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in ENDED

    def as_json(self) -> dict[str, Any]:
        """A plain dictionary, without who asked."""
        return {
            "job": self.id, "state": self.state, "made": self.made, "done": self.done, "total": self.total,
            "added": self.added, "replaced": self.replaced, "unchanged": self.unchanged,
            "problems": list(self.problems), "more_problems": self.more_problems,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Judgement:
    """What somebody said of a passage: whether it answers a query, 1 or 0."""

    who: str
    query: str
    entity: str
    aspect: str
    document: str
    begin: int
    end: int
    answers: int
    made: str


class Desk:
    """The database. A connection for each question: they are few and short, and come from any thread."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        try:
            os.close(os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600))  # for the eyes of this user alone
            descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            fix = "give this user the right to write there"
            raise CaprError(f"{self._file} cannot be written ({error.strerror}). Fix: {fix}.") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # several workers begin at the same time
            with self._open() as database:
                database.execute("PRAGMA journal_mode = WAL")
                database.executescript(files("capr.serve").joinpath("desk.sql").read_text("utf-8"))
        finally:
            os.close(descriptor)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._file, timeout=20, isolation_level=None)) as database:
                database.execute("PRAGMA synchronous = FULL")
                yield database
        except sqlite3.Error as error:
            fix = "give this user the right to write there, or check the disk"
            raise UnavailableError(f"{self._file} cannot be used ({error}). Fix: {fix}.") from error

    # --- jobs ---

    def new_job(self, who: str, replace: bool, total: int | None) -> Job:
        """A job that waits; those that ended long ago are forgotten."""
        id = secrets.token_hex(8)
        with self._open() as database:
            query = "INSERT INTO job (id, made, who, state, replace, total) VALUES (?, ?, ?, 'waiting', ?, ?)"
            database.execute(query, (id, _now(), who, replace, total))
            old = "SELECT id FROM job WHERE state IN ('done', 'failed', 'interrupted') ORDER BY rowid DESC LIMIT -1"
            database.execute(f"DELETE FROM job WHERE id IN ({old} OFFSET ?)", (KEPT,))
        return self.job(id)

    def job(self, id: str) -> Job:
        """A job by its id."""
        with self._open() as database:
            row = database.execute("SELECT * FROM job WHERE id = ?", (id,)).fetchone()
        if row is None:
            raise NotThereError(f"there is no job {id!r}. Fix: check the id.")
        return _job(row)

    def jobs(self, *states: str) -> list[Job]:
        """Jobs in some states, in the order in which they were made."""
        marks = ", ".join("?" for _ in states)
        with self._open() as database:
            rows = database.execute(f"SELECT * FROM job WHERE state IN ({marks}) ORDER BY rowid", states).fetchall()
        return [_job(row) for row in rows]

    def tell(self, id: str, **changed: Any) -> None:
        """Changes what is known of a job."""
        values = {name: json.dumps(value) if name == "problems" else value for name, value in changed.items()}
        with self._open() as database:
            assignments = ", ".join(f"{name} = ?" for name in values)
            database.execute(f"UPDATE job SET {assignments} WHERE id = ?", (*values.values(), id))

    # --- saved searches ---

    def save(self, who: str, name: str, address: str) -> dict[str, str]:
        """Keeps a search of a holder."""
        saved = {"id": secrets.token_hex(8), "name": name, "address": address, "made": _now()}
        with self._open() as database:
            count = database.execute("SELECT COUNT(*) FROM saved WHERE who = ?", (who,)).fetchone()[0]
            if count >= SAVED:
                raise CaprError(f"there are {SAVED} saved searches already. Fix: remove one.")
            row = (saved["id"], who, name, address, saved["made"])
            database.execute("INSERT INTO saved VALUES (?, ?, ?, ?, ?)", row)
        return saved

    def saved(self, who: str) -> list[dict[str, str]]:
        """The searches of a holder, the latest first."""
        with self._open() as database:
            query = "SELECT id, name, address, made FROM saved WHERE who = ? ORDER BY rowid DESC"
            return [
                dict(zip(("id", "name", "address", "made"), row, strict=True))
                for row in database.execute(query, (who,))
            ]

    def forget(self, who: str, id: str) -> None:
        """Removes a search of a holder."""
        with self._open() as database:
            if not database.execute("DELETE FROM saved WHERE who = ? AND id = ?", (who, id)).rowcount:
                raise NotThereError(f"there is no saved search {id!r}. Fix: check the id.")

    # --- feedback ---

    def judge(
        self,
        who: str,
        asked: Mapping[str, str],
        place: tuple[str, int, int],
        answers: bool | None,
        most: int | None = None,
    ) -> None:
        """Keeps what a holder says of a passage; the last word counts, and None takes it back.

        Raises:
            ProblemError: 409 if there are `most` of the holder already, and this is not about one of them.
        """
        key = (who, asked.get("query", ""), asked.get("entity", ""), asked.get("aspect", ""), *place)
        with self._open() as database:
            if answers is None:
                database.execute(f"DELETE FROM feedback WHERE {JUDGED}", key)
                return
            # One statement, so that two that come at the same time are not both the last.
            known = f"EXISTS (SELECT 1 FROM feedback WHERE {JUDGED})"
            room = "(SELECT COUNT(*) FROM feedback WHERE who = ?) < ?"
            query = f"INSERT OR REPLACE INTO feedback SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE {known} OR {room}"
            values = (*key, answers, _now(), *key, who, most if most is not None else NO_LIMIT)
            if not database.execute(query, values).rowcount:
                fact = f"there are {most:,} judgements of this token already, and no more are kept"
                fix = "take some back (answers: null), or ask whoever runs the server for more (capr serve --feedback)"
                raise ProblemError(409, fact, fix)

    def judged(self, who: str, asked: Mapping[str, str]) -> list[Judgement]:
        """What a holder has said of the passages of one query, the latest first."""
        with self._open() as database:
            query = "SELECT * FROM feedback WHERE who = ? AND query = ? AND entity = ? AND aspect = ?"
            values = (who, *(asked.get(name, "") for name in ("query", "entity", "aspect")), SHOWN)
            rows = database.execute(f"{query} ORDER BY made DESC, rowid DESC LIMIT ?", values).fetchall()
        return [Judgement(*row) for row in rows]

    def judgements(self) -> list[Judgement]:
        """All feedback, in the order in which it was given."""
        with self._open() as database:
            rows = database.execute("SELECT * FROM feedback ORDER BY made, rowid").fetchall()
        return [Judgement(*row) for row in rows]


def _job(row: Sequence[Any]) -> Job:
    id, made, who, state, replace, total, done, added, replaced, unchanged, problems, more = row
    return Job(id, made, who, state, bool(replace), total, done, added, replaced, unchanged, json.loads(problems), more)


def _now() -> str:
    return told(datetime.now(UTC))

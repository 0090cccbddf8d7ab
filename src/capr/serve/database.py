"""The database of the server's state: jobs, saved searches and feedback, shared by all workers."""

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

from capr.documents import CaprError, NotFoundError, UnavailableError
from capr.serve.problems import ProblemError
from capr.serve.tokens import timestamp

MAX_PROBLEMS = 100  # stored for a job
MAX_ENDED_JOBS = 1000
MAX_SAVED_SEARCHES = 500  # of a token
MAX_JUDGEMENTS = 1000  # listed for a query
SAME_JUDGEMENT = " AND ".join(
    f"{name} = ?" for name in ("who", "query", "entity", "aspect", "document", "begin", "end")
)
NO_LIMIT = 2**62
ENDED = ("done", "failed", "interrupted")


@dataclass(frozen=True, slots=True)
class Job:
    """Documents that the server adds in the background.

    Attributes:
        id: the id of the job.
        created: when the job was created.
        who: the id of the token that created it.
        state: `waiting`, `running`, `done`, `failed` or `interrupted`.
        replace: whether the job replaces documents that have the same id.
        total: the number of documents; None while it is unknown.
        done: the number of documents processed so far, with those that had a problem.
        added, replaced, unchanged: the number of documents of each outcome.
        problems: the first problems of documents, and the error that ended the job.
        more_problems: the number of further problems.
    """

    id: str
    created: str
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
        """Whether the job has ended, so that it will not change any more."""
        return self.state in ENDED

    def as_json(self) -> dict[str, Any]:
        """Return the job as a dictionary, without the id of the token."""
        return {
            "job": self.id,
            "state": self.state,
            "created": self.created,
            "made": self.created,  # the old name
            "done": self.done,
            "total": self.total,
            "added": self.added,
            "replaced": self.replaced,
            "unchanged": self.unchanged,
            "problems": list(self.problems),
            "more_problems": self.more_problems,
        }


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of a user: whether a passage answers a query, 1 or 0."""

    who: str
    query: str
    entity: str
    aspect: str
    document: str
    begin: int
    end: int
    answers: int
    created: str


class ServerDatabase:
    """The database. Every call opens a connection of its own, because calls come from any thread and are short.

    Args:
        file: the file that `capr.serve.state` names; created if it does not exist.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            os.close(os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600))  # readable by this user alone
            descriptor = os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            fix = "give this user write access there"
            raise CaprError(f"{self._file} cannot be written ({error.strerror}). Fix: {fix}.") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # several workers may start at the same time
            with self._open() as database:
                database.execute("PRAGMA journal_mode = WAL")
                _rename_old_columns(database)
                database.executescript(files("capr.serve").joinpath("database.sql").read_text("utf-8"))
        finally:
            os.close(descriptor)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._file, timeout=20, isolation_level=None)) as database:
                database.execute("PRAGMA synchronous = FULL")
                yield database
        except sqlite3.Error as error:
            fix = "give this user write access there, or check the disk"
            raise UnavailableError(f"{self._file} cannot be used ({error}). Fix: {fix}.") from error

    # --- jobs ---

    def create_job(self, who: str, replace: bool, total: int | None) -> Job:
        """Create a waiting job, and delete the oldest of the ended jobs if there are too many."""
        id = secrets.token_hex(8)
        with self._open() as database:
            query = "INSERT INTO job (id, created, who, state, replace, total) VALUES (?, ?, ?, 'waiting', ?, ?)"
            database.execute(query, (id, _now(), who, replace, total))
            old = "SELECT id FROM job WHERE state IN ('done', 'failed', 'interrupted') ORDER BY rowid DESC LIMIT -1"
            database.execute(f"DELETE FROM job WHERE id IN ({old} OFFSET ?)", (MAX_ENDED_JOBS,))
        return self.job(id)

    def job(self, id: str) -> Job:
        """Return a job by its id."""
        with self._open() as database:
            row = database.execute("SELECT * FROM job WHERE id = ?", (id,)).fetchone()
        if row is None:
            raise NotFoundError(f"there is no job {id!r}. Fix: check the id.")
        return _job(row)

    def jobs(self, *states: str) -> list[Job]:
        """Return the jobs in these states, in the order of their creation."""
        placeholders = ", ".join("?" for _ in states)
        with self._open() as database:
            rows = database.execute(
                f"SELECT * FROM job WHERE state IN ({placeholders}) ORDER BY rowid", states
            ).fetchall()
        return [_job(row) for row in rows]

    def update_job(self, id: str, **changes: Any) -> None:
        """Change fields of a job."""
        values = {name: json.dumps(value) if name == "problems" else value for name, value in changes.items()}
        with self._open() as database:
            assignments = ", ".join(f"{name} = ?" for name in values)
            database.execute(f"UPDATE job SET {assignments} WHERE id = ?", (*values.values(), id))

    # --- saved searches ---

    def save_search(self, who: str, name: str, address: str) -> dict[str, str]:
        """Save a search of a token, and return it."""
        created = _now()
        search = {"id": secrets.token_hex(8), "name": name, "address": address, "created": created, "made": created}
        with self._open() as database:
            count = database.execute("SELECT COUNT(*) FROM saved WHERE who = ?", (who,)).fetchone()[0]
            if count >= MAX_SAVED_SEARCHES:
                raise CaprError(f"there are {MAX_SAVED_SEARCHES} saved searches already. Fix: remove one.")
            row = (search["id"], who, name, address, created)
            database.execute("INSERT INTO saved VALUES (?, ?, ?, ?, ?)", row)
        return search

    def saved_searches(self, who: str) -> list[dict[str, str]]:
        """Return the saved searches of a token, the latest first."""
        with self._open() as database:
            query = "SELECT id, name, address, created, created FROM saved WHERE who = ? ORDER BY rowid DESC"
            names = ("id", "name", "address", "created", "made")  # `made` is the old name of `created`
            return [dict(zip(names, row, strict=True)) for row in database.execute(query, (who,))]

    def remove_search(self, who: str, id: str) -> None:
        """Remove a saved search of a token."""
        with self._open() as database:
            if not database.execute("DELETE FROM saved WHERE who = ? AND id = ?", (who, id)).rowcount:
                raise NotFoundError(f"there is no saved search {id!r}. Fix: check the id.")

    # --- feedback ---

    def judge(
        self,
        who: str,
        query: Mapping[str, str],
        passage: tuple[str, int, int],
        answers: bool | None,
        limit: int | None = None,
    ) -> None:
        """Store a judgement. It replaces an earlier one of the same query and passage; None withdraws that one.

        Args:
            who: the id of the token.
            query: the text, entity and aspect of the query; absent parts are empty.
            passage: the id of the document, and the span.
            answers: whether the passage answers the query.
            limit: the number of judgements that a token may have.

        Raises:
            ProblemError: 409 if the token has `limit` judgements already, and this one does not replace any.
        """
        key = (who, *(query.get(name, "") for name in ("query", "entity", "aspect")), *passage)
        with self._open() as database:
            if answers is None:
                database.execute(f"DELETE FROM feedback WHERE {SAME_JUDGEMENT}", key)
                return
            # One statement, so that two concurrent judgements cannot both take the last free place.
            exists = f"EXISTS (SELECT 1 FROM feedback WHERE {SAME_JUDGEMENT})"
            has_room = "(SELECT COUNT(*) FROM feedback WHERE who = ?) < ?"
            statement = f"INSERT OR REPLACE INTO feedback SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE {exists} OR {has_room}"
            values = (*key, answers, _now(), *key, who, limit if limit is not None else NO_LIMIT)
            if not database.execute(statement, values).rowcount:
                fact = f"this token already has {limit:,} judgements, and no more are stored"
                more = "ask the administrator for a higher limit (capr serve --max-judgements)"
                fix = f"withdraw some (answers: null), or {more}"
                raise ProblemError(409, fact, fix)

    def judgements_of(self, who: str, query: Mapping[str, str]) -> list[Judgement]:
        """Return the judgements of a token for one query, the latest first."""
        with self._open() as database:
            statement = "SELECT * FROM feedback WHERE who = ? AND query = ? AND entity = ? AND aspect = ?"
            values = (who, *(query.get(name, "") for name in ("query", "entity", "aspect")), MAX_JUDGEMENTS)
            rows = database.execute(f"{statement} ORDER BY created DESC, rowid DESC LIMIT ?", values).fetchall()
        return [Judgement(*row) for row in rows]

    def judgements(self) -> list[Judgement]:
        """Return all judgements in the order of their creation."""
        with self._open() as database:
            rows = database.execute("SELECT * FROM feedback ORDER BY created, rowid").fetchall()
        return [Judgement(*row) for row in rows]


def _rename_old_columns(database: sqlite3.Connection) -> None:
    """Give the columns of a database of an older version their new names."""
    for table in ("job", "saved", "feedback"):
        columns = [name for _, name, *_ in database.execute(f"PRAGMA table_info({table})")]
        if "made" in columns:
            database.execute(f"ALTER TABLE {table} RENAME COLUMN made TO created")


def _job(row: Sequence[Any]) -> Job:
    id, created, who, state, replace, total, done, added, replaced, unchanged, problems, more = row
    return Job(
        id, created, who, state, bool(replace), total, done, added, replaced, unchanged, json.loads(problems), more
    )


def _now() -> str:
    return timestamp(datetime.now(UTC))

"""Connections to the database, transactions, and the translation of SQLite's errors into `CaprError`."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from capr.annotate.concept import Concept
from capr.documents import BusyError, CaprError, UnavailableError
from capr.index.embedded.space_names import derived
from capr.index.engines import not_a_library

FORMAT = 1
FILE = "library.db"
# The names in a folder that may become a library: of a library whose creation was interrupted, and of an empty disk.
OWN_NAMES = {"lock", *derived(), "lost+found"}
MAX_VALUES = 500  # in one SQL statement


@dataclass(eq=False)
class ThreadState:
    """What a thread has of the database.

    Attributes:
        thread: the thread.
        process: its process; SQLite must not be used across a fork.
        connection: its connection, if it has one.
        depth: how many nested `errors` blocks it is in; it runs statements only inside them.
        is_closed: whether `close` was called; then the thread closes its connection when it leaves the outermost block.
        concepts: the concepts that it has read, by number.
        stamp: the state of the files when an immutable connection was opened; see `generation`.
    """

    thread: weakref.ref[threading.Thread]
    process: int
    connection: sqlite3.Connection | None = None
    depth: int = 0
    is_closed: bool = False
    concepts: dict[int, Concept] = field(default_factory=dict)
    stamp: tuple[int, ...] | None = None

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None


def has_other_files(folder: Path) -> bool:
    """Return whether a folder has files that no library has; hidden files do not count."""
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError as error:
        fix = "check the permissions of the folder, or name another one"
        raise CaprError(f"{folder} cannot be read ({error.strerror}). Fix: {fix}.") from error
    return any(name not in OWN_NAMES and not name.startswith((FILE, ".")) for name in names)


class Database:
    """A connection for each thread. Readers see the state of the last commit."""

    def __init__(self, folder: Path, create: bool = False) -> None:
        self.folder, self.file, self._process = folder, folder / FILE, os.getpid()
        self._local = threading.local()
        self._states: list[ThreadState] = []
        self._inherited: list[ThreadState] = []  # of the process that forked this one, which alone may close them
        self._changing = threading.Lock()
        try:
            exists = self.file.exists()
        except OSError as error:
            fix = "check the permissions of the folder and of the files in it"
            raise CaprError(f"{self.file} cannot be opened ({error.strerror}). Fix: {fix}.") from error
        if create and not exists:
            if has_other_files(folder):
                fact = f"{folder} has other files and is not a library"
                raise CaprError(f"{fact}. Fix: name a new or an empty folder.")
            self._create()
        if not self.file.is_file():
            raise not_a_library(folder)
        with self.errors():
            version = self.meta("format")
        if version != str(FORMAT):
            raise CaprError(
                f"{folder} has library format {version}, and this version of capr reads format {FORMAT}. Fix: with the "
                f"version that made it, run capr export {folder} -o documents.jsonl; then, with this version, "
                "capr index NEW documents.jsonl."
            )

    def _create(self) -> None:
        """Create the file under another name, then rename it, so that no process opens a partial file."""
        part = self.file.with_name(f"{FILE}.{os.getpid()}.part")
        try:
            part.unlink(missing_ok=True)  # a killed process may have left it
            with self.errors(), closing(sqlite3.connect(part, isolation_level=None)) as database:
                database.executescript(
                    "PRAGMA page_size = 8192; PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL; BEGIN;"
                    + files("capr.index.embedded").joinpath("schema.sql").read_text("utf-8")
                )
                database.execute("INSERT INTO meta VALUES ('format', ?), ('generation', '0')", (str(FORMAT),))
                database.execute("COMMIT")
                database.execute("PRAGMA journal_mode = WAL")  # after the commit, so that all data is in this file
            with suppress(FileExistsError):  # another process created it first
                os.link(part, self.file)
        except OSError as error:
            fix = "free space, or name a folder on another disk"
            raise CaprError(f"{self.file} cannot be created ({error.strerror}). Fix: {fix}.") from error
        finally:
            for suffix in ("", "-journal", "-wal", "-shm"):
                part.with_name(part.name + suffix).unlink(missing_ok=True)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Translate SQLite's errors into a `CaprError` with the cause and the fix."""
        try:
            with self._open_connection():
                yield
        except sqlite3.DatabaseError as error:
            message = str(error)
            if "disk is full" in message or "disk I/O" in message:
                fix = "free space and run the same command again; it continues where it stopped, and nothing is lost"
                raise UnavailableError(f"{self.folder}: the disk is full or failed ({message}). Fix: {fix}.") from error
            if any(
                cause in message
                for cause in ("disk image is malformed", "not a database", "no such table", "Could not decode")
            ):
                raise self._damaged(error) from error
            if "readonly" in message or "unable to open" in message:
                fix = "check the permissions of the folder and of the files in it"
                raise UnavailableError(f"{self.file} cannot be opened ({message}). Fix: {fix}.") from error
            if "closed database" in message:
                raise CaprError(f"{self.folder} was closed. Fix: open the library again.") from error
            if "locked" in message:
                raise BusyError(f"{self.file} is busy ({message}). Fix: try again in a moment.") from error
            raise

    def _damaged(self, error: Exception) -> CaprError:
        fix = f"restore {FILE} from a backup, or create the library again with capr index"
        return UnavailableError(f"{self.file} is damaged ({error}). Fix: {fix}.")

    @contextmanager
    def _row_errors(self) -> Iterator[None]:
        """Report a row that cannot be decoded as damage of the database."""
        try:
            yield
        except (ValueError, TypeError, AttributeError) as error:
            raise self._damaged(error) from error

    @contextmanager
    def _open_connection(self) -> Iterator[None]:
        """Keep the connection of this thread open until the end of the block, even if another thread calls `close`.

        Closing a connection while another thread runs a statement on it would crash the process.
        """
        state = self._state_of_thread()
        with self._changing:
            state.depth += 1
        try:
            yield
        finally:
            with self._changing:
                state.depth -= 1
                if state.is_closed and not state.depth:
                    state.close()

    def _state_of_thread(self) -> ThreadState:
        state: ThreadState | None = getattr(self._local, "state", None)
        if state is None or state.process != os.getpid():
            if self._process != os.getpid():  # another thread may have held the lock when the process was forked
                self._process, self._changing = os.getpid(), threading.Lock()
                self._inherited, self._states = self._states, []
            state = self._local.state = ThreadState(weakref.ref(threading.current_thread()), os.getpid())
            with self._changing:
                for ended in (other for other in self._states if other.thread() is None):
                    ended.close()
                self._states = [*(other for other in self._states if other.thread() is not None), state]
        return state

    @property
    def database(self) -> sqlite3.Connection:
        """The connection of this thread."""
        state = self._state_of_thread()
        if state.connection is None:
            state.connection = self._connect(state)
            state.concepts.clear()
        return state.connection

    @property
    def concepts(self) -> dict[int, Concept]:
        """The concepts that this thread has read, by number."""
        return self._state_of_thread().concepts

    def _connect(self, state: ThreadState) -> sqlite3.Connection:
        """Open a connection.

        If this user may not write, the connection may have to be immutable: SQLite assumes that the file never changes.
        `generation` then checks whether it has changed.
        """
        uri = self.file.absolute().as_uri()
        state.stamp = None
        if os.access(self.folder, os.W_OK):
            return self._open(f"{uri}?mode=rw")
        try:
            return self._open(f"{uri}?mode=ro")
        except sqlite3.OperationalError:  # SQLite has to create files beside it, such as the log
            with suppress(OSError):
                if self.file.with_name(f"{FILE}-wal").stat().st_size:
                    fix = "search once as a user who may write there, or give this user write access"
                    raise CaprError(
                        f"{self.file} has changes in its log that cannot be read here. Fix: {fix}."
                    ) from None
            state.stamp = self._stamp()
            return self._open(f"{uri}?immutable=1")

    def _stamp(self) -> tuple[int, ...]:
        """Return the inodes, sizes and modification times of the files, which change with their contents."""
        stamp: list[int] = []
        for name in (FILE, f"{FILE}-wal"):
            with suppress(OSError):
                status = (self.folder / name).stat()
                stamp += [status.st_ino, status.st_size, status.st_mtime_ns]
        return tuple(stamp)

    def _open(self, uri: str) -> sqlite3.Connection:
        database = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=60)
        database.execute("PRAGMA synchronous = FULL")  # committed changes survive a power cut
        database.execute("PRAGMA cache_size = -16000")
        database.execute("SELECT 1 FROM sqlite_master").fetchall()  # fails here if the file cannot be read
        return database

    def close(self) -> None:
        """Close the connections; a connection that runs a statement in another thread is closed after it."""
        with self._changing:
            states, self._states, self._local = self._states, [], threading.local()
            for state in states:
                state.is_closed = True
                if not state.depth:
                    state.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read one state of the database with several queries."""
        with self.errors():
            database = self.database
            if database.in_transaction:  # of the writer, or of an outer `reading`
                yield database
                return
            database.execute("BEGIN")
            try:
                yield database
            finally:
                if database.in_transaction:
                    database.execute("ROLLBACK")

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """Commit all changes, or none if an exception is raised; committed changes are on disk."""
        with self.errors():
            database = self.database
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
                database.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
                database.execute("COMMIT")
            except BaseException:
                if database.in_transaction:  # SQLite rolls back by itself if the disk is full
                    database.execute("ROLLBACK")
                raise

    def meta(self, key: str) -> str | None:
        row = self.database.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, key: str, value: str) -> None:
        self.database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def sequence(self, table: str) -> int:
        """Return the last number that a table gave to a row."""
        row = self.database.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
        return int(row[0]) if row else 0

    def generation(self) -> int:
        """Return a number that grows with every change."""
        state = self._state_of_thread()
        if state.stamp not in (None, self._stamp()):
            state.close()
        return int(self.meta("generation") or 0)


def placeholders(values: Iterable[Any]) -> str:
    """Return a `?` for each value, for an SQL statement."""
    return ", ".join("?" for _ in values)


def batches(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Yield the values in batches that fit one SQL statement."""
    for begin in range(0, len(values), MAX_VALUES):
        yield values[begin : begin + MAX_VALUES]

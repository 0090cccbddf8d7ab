"""The database: connections, transactions, and what SQLite's errors mean for a library."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

from capr.documents import BusyError, CaprError, UnavailableError

FORMAT = 1
FILE = "library.db"
MANY = 500  # values in one SQL statement


class Database:
    """One connection for each thread. Readers see the state of the last commit."""

    def __init__(self, folder: Path, create: bool = False) -> None:
        self.folder, self.file, self._process = folder, folder / FILE, os.getpid()
        self._local = threading.local()
        self._connections: list[tuple[weakref.ref[threading.Thread], sqlite3.Connection]] = []
        self._changing = threading.Lock()
        try:
            there = self.file.exists()
        except OSError as error:
            fix = "check the permissions of the folder and of the files in it"
            raise CaprError(f"{self.file} cannot be opened ({error.strerror}). Fix: {fix}.") from error
        if create and not there:
            self._create()
        if not self.file.is_file():
            raise CaprError(f"{folder} is not a library: it has no {FILE}. Fix: capr index {folder} FILE...")
        with self.errors():
            found = self.meta("format")
        if found != str(FORMAT):
            raise CaprError(
                f"{folder} has the format {found} of libraries, and this capr reads format {FORMAT}. Fix: with the "
                f"capr that made it, run capr export {folder} -o documents.jsonl; then, with this one, "
                "capr index NEW documents.jsonl."
            )

    def _create(self) -> None:
        """Makes the file whole and then gives it its name, so that nobody opens half of it."""
        part = self.file.with_name(f"{FILE}.{os.getpid()}.part")
        try:
            part.unlink(missing_ok=True)  # of a process that was killed
            with self.errors(), closing(sqlite3.connect(part, isolation_level=None)) as database:
                database.executescript(
                    "PRAGMA page_size = 8192; PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL; BEGIN;"
                    + files("capr.index").joinpath("schema.sql").read_text("utf-8")
                )
                database.execute("INSERT INTO meta VALUES ('format', ?), ('generation', '0')", (str(FORMAT),))
                database.execute("COMMIT")
                database.execute("PRAGMA journal_mode = WAL")  # now that all of it is in the one file
            with suppress(FileExistsError):  # another process was quicker
                os.link(part, self.file)
        except OSError as error:
            fix = "make room, or name a folder on another disk"
            raise CaprError(f"{self.file} cannot be made ({error.strerror}). Fix: {fix}.") from error
        finally:
            for end in ("", "-journal", "-wal", "-shm"):
                part.with_name(part.name + end).unlink(missing_ok=True)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Says what SQLite's errors mean for a library."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            said = str(error)
            if "disk is full" in said or "disk I/O" in said:
                fix = "make room and run the same command again; it goes on where it stopped, nothing is lost"
                raise UnavailableError(f"{self.folder}: the disk is full or failed ({said}). Fix: {fix}.") from error
            if any(
                part in said
                for part in ("disk image is malformed", "not a database", "no such table", "Could not decode")
            ):
                raise self._damaged(error) from error
            if "readonly" in said or "unable to open" in said:
                fix = "check the permissions of the folder and of the files in it"
                raise UnavailableError(f"{self.file} cannot be opened ({said}). Fix: {fix}.") from error
            if "closed database" in said:
                raise CaprError(f"{self.folder} was closed. Fix: open the library again.") from error
            if "locked" in said:
                raise BusyError(f"{self.file} is busy ({said}). Fix: try again in a moment.") from error
            raise

    def _damaged(self, error: Exception) -> CaprError:
        fix = f"restore {FILE} from a backup, or make the library again with capr index"
        return UnavailableError(f"{self.file} is damaged ({error}). Fix: {fix}.")

    @contextmanager
    def _sound(self) -> Iterator[None]:
        """Says what it means that a row is not as it was written."""
        try:
            yield
        except (ValueError, TypeError, AttributeError) as error:
            raise self._damaged(error) from error

    @property
    def database(self) -> sqlite3.Connection:
        """The connection of this thread."""
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None or self._local.process != os.getpid():  # SQLite must not be used across a fork
            found = self._connect()
            self._local.connection, self._local.process = found, os.getpid()
            self._local.concepts = {}
            with self._changing:
                for thread, connection in self._connections:
                    if thread() is None and self._process == os.getpid():
                        connection.close()
                alive = [(thread, connection) for thread, connection in self._connections if thread() is not None]
                self._connections = [*alive, (weakref.ref(threading.current_thread()), found)]
        return found

    def _connect(self) -> sqlite3.Connection:
        """A connection; where nothing may be written, one that SQLite takes to be to a file that does not change.

        `generation` looks whether it has changed all the same.
        """
        place = self.file.absolute().as_uri()
        self._local.stamp = None
        if os.access(self.folder, os.W_OK):
            return self._opened(f"{place}?mode=rw")
        try:
            return self._opened(f"{place}?mode=ro")
        except sqlite3.OperationalError:  # it wants to make files beside, such as the log of changes
            with suppress(OSError):
                if self.file.with_name(f"{FILE}-wal").stat().st_size:
                    fix = "search once as a user who may write there, or give this user that right"
                    raise CaprError(
                        f"{self.file} has changes in its log that cannot be read here. Fix: {fix}."
                    ) from None
            self._local.stamp = self._stamp()
            return self._opened(f"{place}?immutable=1")

    def _stamp(self) -> tuple[int, ...]:
        """It changes with the files."""
        found: list[int] = []
        for name in (FILE, f"{FILE}-wal"):
            with suppress(OSError):
                status = (self.folder / name).stat()
                found += [status.st_ino, status.st_size, status.st_mtime_ns]
        return tuple(found)

    def _opened(self, uri: str) -> sqlite3.Connection:
        database = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=60)
        database.execute("PRAGMA synchronous = FULL")  # what was committed survives a power cut
        database.execute("PRAGMA cache_size = -16000")
        database.execute("SELECT 1 FROM sqlite_master").fetchall()  # whether it can be read at all
        return database

    def close(self) -> None:
        for _, connection in self._connections:
            connection.close()
        self._connections.clear()
        self._local = threading.local()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One state for several questions."""
        with self.errors():
            database = self.database
            if database.in_transaction:  # of the writer, or of an outer reading
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
        """All changes or none, safe on disk when it ends."""
        with self.errors():
            database = self.database
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
                database.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
                database.execute("COMMIT")
            except BaseException:
                if database.in_transaction:  # a full disk has ended it already
                    database.execute("ROLLBACK")
                raise

    def meta(self, key: str) -> str | None:
        row = self.database.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, key: str, value: str) -> None:
        self.database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def generation(self) -> int:
        """It grows with every change."""
        if getattr(self._local, "stamp", None) not in (None, self._stamp()):
            self._local.connection = None
        return int(self.meta("generation") or 0)


def marks(values: Iterable[Any]) -> str:
    """As many marks as values, for a statement that takes them."""
    return ", ".join("?" for _ in values)


def parts(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """As many values at a time as one statement may take."""
    for begin in range(0, len(values), MANY):
        yield values[begin : begin + MANY]

"""The audit trail: which caller read or changed which documents, when, and with which query and filters.

The trail is an append-only file of JSON Lines. The server syncs each line to disk before it sends the reply, and sends
no reply if that fails. Several processes may write to it; a process that finds the file too large or too old rotates
it.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from capr.documents import CaprError
from capr.serve.durable import sync_folder

LOCAL, NOBODY = "local", "nobody"  # callers without a token: on the server's machine, and unidentified ones
FILE, LOCK, KEY = "audit.jsonl", "lock", "key"
TIME_BYTES = 4096  # the first line has its time within so many bytes
TIME = re.compile(rb'"time": "([^"]+)"')
DAY = 86_400.0
YEAR_OR_MONTH = re.compile(r"\d{4}(?:-\d\d)?", re.ASCII)


@dataclass
class AuditRecord:
    """The facts about one request that the audit trail records. Routes fill in the fields.

    Attributes:
        query: the text, entity and aspect of the query, as the caller sent them.
        filters: the filters, as the caller sent them.
        documents: the ids of all documents that the reply shows or the request changed.
        requested: the ids of documents that the caller named or sent, but that were neither shown nor changed.
        more: further fields of the entry.
    """

    query: Mapping[str, str] = field(default_factory=dict)
    filters: Mapping[str, Any] = field(default_factory=dict)
    documents: Sequence[str] = ()
    requested: Sequence[str] = ()
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def refused(self) -> AuditRecord:
        """Return the record of the request if the server refuses it and shows none of the documents."""
        return replace(self, documents=(), requested=[*self.requested, *self.documents])


class Audit:
    """The writer of the trail.

    A background thread writes the lines of concurrent requests together, so that they share one sync.

    Args:
        folder: the folder of the trail; created if it does not exist.
        hashed: whether to store a keyed hash of queries instead of their text. Equal queries have equal hashes; the
            key is in the folder.
        size: the size in bytes at which a file is closed.
        days: the age at which a file is closed.
    """

    def __init__(self, folder: Path, hashed: bool = False, size: int = 64_000_000, days: float = 30.0) -> None:
        self.folder, self._max_size, self._max_age = folder, size, days * DAY
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            self._key = _key(folder / KEY) if hashed else None
        except OSError as error:
            fix = "give this user write access there, or name another folder with --audit"
            raise CaprError(f"the audit trail {folder} cannot be written ({error.strerror}). Fix: {fix}.") from error
        self._appending = threading.Lock()  # the file lock does not separate the threads of a process
        self._queue: SimpleQueue[tuple[bytes, asyncio.Future[None]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, name="capr-audit", daemon=True)
        self._thread.start()

    def line(self, record: AuditRecord, **fields: Any) -> bytes:
        """Return the line of a record with further fields."""
        query = {name: text for name, text in record.query.items() if text}
        if self._key is not None:
            query = {
                name: "hmac-sha256:" + hmac.new(self._key, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()
                for name, text in query.items()
            }
        details = {
            "query": query,
            "filters": record.filters,
            "documents": list(record.documents),
            "requested": list(record.requested),
            "asked": list(record.requested),  # the old name, for programs that read the trail
        }
        entry = {**fields, **{name: value for name, value in details.items() if value}, **record.more}
        return json.dumps(entry, ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n"

    async def write(self, line: bytes) -> None:
        """Write a line, and return when it is on disk.

        Raises:
            OSError: the line cannot be written.
        """
        future = asyncio.get_running_loop().create_future()
        self._queue.put((line, future))
        await future

    def close(self) -> None:
        """Write the lines that are still in the queue, and stop the thread."""
        self._queue.put(None)
        self._thread.join(10)

    def _write_all(self) -> None:
        closed = False
        while not closed:
            items = [self._queue.get()]
            while not self._queue.empty():
                items.append(self._queue.get())
            closed = None in items
            batch = [item for item in items if item is not None]
            if not batch:
                continue
            error: OSError | None = None
            try:
                self.append(b"".join(line for line, _ in batch))
            except Exception as failure:  # every request must learn of it, and the thread must go on
                error = failure if isinstance(failure, OSError) else OSError(str(failure))
            for _, future in batch:
                future.get_loop().call_soon_threadsafe(_settle, future, error)

    def append(self, lines: bytes) -> None:
        """Write lines, and wait until they are on disk. A lock keeps other processes from writing in between."""
        with self._appending:
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            try:
                self._append(lines)
            finally:
                fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _append(self, lines: bytes) -> None:
        file = self.folder / FILE
        self._rotate(file)
        exists = file.exists()
        descriptor = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                lines = b"\n" + lines  # the last line is incomplete: a process was killed, or the disk was full
            written = os.write(descriptor, lines)
            if written < len(lines):
                os.ftruncate(descriptor, size)
                raise OSError(28, "no space left for the audit trail")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if not exists:
            sync_folder(self.folder)

    def _rotate(self, file: Path) -> None:
        try:
            size = file.stat().st_size
        except FileNotFoundError:
            return
        started = _start_time(file)
        if size < self._max_size and (started is None or time.time() - started < self._max_age):
            return
        time_suffix = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
        file.rename(self.folder / f"audit-{time_suffix}.jsonl")


def entries(folder: Path, *, since: str = "", who: str = "", document: str = "") -> Iterator[dict[str, Any]]:
    """Yield the entries of a trail in their order, those of closed files included.

    An incomplete line becomes an entry with the field `damaged`, whatever the conditions.

    Args:
        folder: the folder of the trail.
        since: the day or time of the earliest entry, `2024-03-18` or `2024-03-18T09:30`; in UTC unless it names an
            offset.
        who: the name or the id of a token, `local` or `nobody`.
        document: the id of a document that the request showed or changed.

    Raises:
        CaprError: there is no trail, or `since` is not a date.
    """
    since = _earliest_time(since)
    if not folder.is_dir():
        raise CaprError(f"there is no audit trail {folder}. Fix: name the folder with --audit, or serve the library.")
    for file in [*sorted(folder.glob("audit-*.jsonl")), folder / FILE]:
        if not file.is_file():
            continue
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    entry = json.loads(line)
                    if not isinstance(entry, dict):
                        raise ValueError("no object")
                except ValueError:
                    entry = {"damaged": f"{file.name}, line {number}"}
                if _matches(entry, since, who, document):
                    yield entry


def _earliest_time(since: str) -> str:
    """Return a date or time in the form in which the trail stores times, so that texts compare as times do."""
    text = since.strip()
    if not text:
        return ""
    try:
        moment = datetime.fromisoformat(f"{text}-01-01"[:10] if YEAR_OR_MONTH.fullmatch(text) else text)
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise CaprError(f"{since!r} is not a date. Fix: write 2024-03-18 or 2024-03-18T09:30.") from error
    return moment.replace(tzinfo=None).isoformat()


def _matches(entry: Mapping[str, Any], since: str, who: str, document: str) -> bool:
    if "damaged" in entry:
        return True  # it may be an entry that matches
    return (
        str(entry.get("time", "")) >= since
        and (not who or who in (entry.get("who") or NOBODY, entry.get("token")))
        and (not document or document in entry.get("documents", ()))
    )


def _settle(future: asyncio.Future[None], error: OSError | None) -> None:
    """Set the result of a future, unless its request was cancelled."""
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)


def _start_time(file: Path) -> float | None:
    """Return when the first line of a file was written; None if it has no valid time."""
    with file.open("rb") as opened:
        first_line = opened.readline(TIME_BYTES)
    match = TIME.search(first_line)
    try:
        return datetime.fromisoformat(match[1].decode()).timestamp() if match else None
    except ValueError:
        return None


def _key(file: Path) -> bytes:
    """Return the key of the hashes. The first process creates it."""
    part = file.with_name(f"{KEY}.{os.getpid()}.part")
    if not file.exists():
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as opened:
            opened.write(secrets.token_bytes(32))
            opened.flush()
            os.fsync(opened.fileno())
        try:
            os.link(part, file)
        except FileExistsError:
            pass
        finally:
            part.unlink()
    return file.read_bytes()

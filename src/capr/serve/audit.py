"""The audit trail: who searched or opened what, when, with which filters, and what was shown.

An append-only file of JSON Lines. A line is on disk before the reply leaves; if it cannot be written, there is no
reply. Several processes may write to it, and whoever finds it too large or too old closes it and begins the next.
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

FILE, LOCK, KEY = "audit.jsonl", "lock", "key"
FIRST = 4096  # bytes in which the first line's time stands
TIME = re.compile(rb'"time": "([^"]+)"')
DAY = 86_400.0


@dataclass
class Record:
    """What is told of one request; routes fill in what they know.

    Attributes:
        query: what was asked, as it was given.
        filters: with which.
        documents: the ids of all documents of which something was shown, or that were changed.
        asked: the ids of documents that were asked for, or sent, of which nothing was shown or changed by this.
        more: whatever else says what was done.
    """

    query: Mapping[str, str] = field(default_factory=dict)
    filters: Mapping[str, Any] = field(default_factory=dict)
    documents: Sequence[str] = ()
    asked: Sequence[str] = ()
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def refused(self) -> Record:
        """The same of a request that was not served: what it asked for was not shown."""
        return replace(self, documents=(), asked=[*self.asked, *self.documents])


class Audit:
    """Writes the trail.

    Lines of requests that come at the same time are written together, so that they share one wait for the disk.

    Args:
        folder: made if it is not there.
        hashed: keep a keyed hash of queries instead of their text. Equal queries have equal hashes; the key is in the
            folder.
        size: bytes after which a file is closed.
        days: after which it is.
    """

    def __init__(self, folder: Path, hashed: bool = False, size: int = 64_000_000, days: float = 30.0) -> None:
        self.folder, self._size, self._age = folder, size, days * DAY
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            self._key = _key(folder / KEY) if hashed else None
        except OSError as error:
            fix = "give this user the right to write there, or name another folder with --audit"
            raise CaprError(f"the audit trail {folder} cannot be written ({error.strerror}). Fix: {fix}.") from error
        self._appending = threading.Lock()  # the lock of the file is one for all threads
        self._lines: SimpleQueue[tuple[bytes, asyncio.Future[None]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, name="capr-audit", daemon=True)
        self._thread.start()

    def line(self, record: Record, **known: Any) -> bytes:
        """A line of the trail."""
        query = {name: text for name, text in record.query.items() if text}
        if self._key is not None:
            query = {
                name: "hmac-sha256:" + hmac.new(self._key, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()
                for name, text in query.items()
            }
        said = {
            "query": query, "filters": record.filters, "documents": list(record.documents), "asked": list(record.asked)
        }  # fmt: skip
        told = {**known, **{name: value for name, value in said.items() if value}, **record.more}
        return json.dumps(told, ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n"

    async def write(self, line: bytes) -> None:
        """Returns when the line is on disk.

        Raises:
            OSError: it is not.
        """
        future = asyncio.get_running_loop().create_future()
        self._lines.put((line, future))
        await future

    def close(self) -> None:
        """Writes what is left."""
        self._lines.put(None)
        self._thread.join(10)

    def _write_all(self) -> None:
        last = False
        while not last:
            waiting = [self._lines.get()]
            while not self._lines.empty():
                waiting.append(self._lines.get())
            last = None in waiting
            batch = [one for one in waiting if one is not None]
            if not batch:
                continue
            error: OSError | None = None
            try:
                self.append(b"".join(line for line, _ in batch))
            except Exception as failed:  # whatever it is, those who wait have to be told, and the next ones served
                error = failed if isinstance(failed, OSError) else OSError(str(failed))
            for _, future in batch:
                future.get_loop().call_soon_threadsafe(_settle, future, error)

    def append(self, lines: bytes) -> None:
        """Writes lines, and waits until they are on disk. One process at a time, so that none is torn or lost."""
        with self._appending:
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            try:
                self._append(lines)
            finally:
                fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _append(self, lines: bytes) -> None:
        file = self.folder / FILE
        self._rotate(file)
        there = file.exists()
        descriptor = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                lines = b"\n" + lines  # a process was killed, or a disk was full, in the middle of a line
            written = os.write(descriptor, lines)
            if written < len(lines):
                os.ftruncate(descriptor, size)
                raise OSError(28, "no space left for the audit trail")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if not there:
            _sync_folder(self.folder)

    def _rotate(self, file: Path) -> None:
        try:
            size = file.stat().st_size
        except FileNotFoundError:
            return
        begun = _begun(file)
        if size < self._size and (begun is None or time.time() - begun < self._age):
            return
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
        file.rename(self.folder / f"audit-{moment}.jsonl")


def entries(folder: Path, *, since: str = "", who: str = "", document: str = "") -> Iterator[dict[str, Any]]:
    """The entries of a trail in their order, of closed files, too; a line that is not whole is told as damaged.

    Args:
        folder: of the trail.
        since: a day or a moment, `2024-03-18` or `2024-03-18T09:30`.
        who: the name or the id of a token.
        document: the id of a document that was shown or changed.
    """
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
                if _wanted(entry, since, who, document):
                    yield entry


def _wanted(entry: Mapping[str, Any], since: str, who: str, document: str) -> bool:
    if "damaged" in entry:
        return True  # it may be about anything
    return (
        str(entry.get("time", "")) >= since
        and (not who or who in (entry.get("who"), entry.get("token")))
        and (not document or document in entry.get("documents", ()))
    )


def _settle(future: asyncio.Future[None], error: OSError | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)


def _begun(file: Path) -> float | None:
    """When the first line of a file was written."""
    with file.open("rb") as opened:
        line = opened.readline(FIRST)
    found = TIME.search(line)
    try:
        return datetime.fromisoformat(found[1].decode()).timestamp() if found else None
    except ValueError:
        return None


def _key(file: Path) -> bytes:
    """The key of hashes; made once, by whichever process comes first."""
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


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

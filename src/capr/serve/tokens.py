"""Tokens: who may ask, for what, and about which documents. They are kept as hashes, beside the library."""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

from capr.documents import CaprError, UnavailableError
from capr.index import Filters
from capr.index.database import FILE as LIBRARY
from capr.index.part import about_passages

FILE = "tokens.json"
PREFIX = "capr_"
ROLES = ("reader", "writer", "admin")  # each may do what those before it may
BYTES = 32  # of chance in a token: nobody guesses it, so that a plain hash of it tells nothing
Restrictions = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Token:
    """What is known of a token; not the token itself.

    Attributes:
        id: by which it is named and revoked.
        name: of its holder.
        role: `reader`, `writer` or `admin`.
        hash: SHA-256 of the token.
        restrictions: filters that every document has to pass, as `Filters.of` reads them; none for all documents.
        made: when.
        expires: when it is no longer valid; empty for never.
        revoked: when it was; empty if it was not.
    """

    id: str
    name: str
    role: str
    hash: str
    restrictions: Restrictions = field(default_factory=dict)
    made: str = ""
    expires: str = ""
    revoked: str = ""

    @cached_property
    def filters(self) -> Filters:
        """The restrictions."""
        return Filters.of(self.restrictions)

    def state(self, now: datetime | None = None) -> str:
        """`valid`, `revoked` or `expired`."""
        if self.revoked:
            return "revoked"
        return "expired" if self.expires and self.expires <= told(now or datetime.now(UTC)) else "valid"


class Tokens:
    """The tokens of a library, in a file that any number of processes may read and change.

    Every look at it sees the last change: a token that is revoked does not count from then on.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / FILE
        self._stamp: tuple[int, ...] | None = None
        self._known: tuple[Token, ...] = ()

    def create(
        self, name: str, role: str = "reader", restrictions: Restrictions | None = None, days: float | None = None
    ) -> tuple[str, Token]:
        """A new token, which is told now and never again, and what is kept of it."""
        wanted = {name: list(values) for name, values in (restrictions or {}).items()}
        self._check(name, role, wanted, days)
        token = PREFIX + secrets.token_urlsafe(BYTES)
        now = datetime.now(UTC)
        with self._changing():
            made = Token(
                secrets.token_hex(4), name.strip(), role, _hash(token), wanted, told(now),
                told(now + timedelta(days=days)) if days is not None else "",
            )  # fmt: skip
            self._write([*self.all(), made])
        return token, made

    def revoke(self, name: str) -> list[Token]:
        """Revokes the token with that id, or all of a holder; gives those that were valid."""
        with self._changing():
            known = self.all()
            wanted = [one.id for one in known if name in (one.id, one.name)]
            if not wanted:
                raise CaprError(f"there is no token {name!r}. Fix: capr token list shows all.")
            now = told(datetime.now(UTC))
            changed = [one for one in known if one.id in wanted and not one.revoked]
            self._write([replace(one, revoked=now) if one in changed else one for one in known])
        return changed

    def all(self) -> tuple[Token, ...]:
        """All that were ever made, in the order in which they were.

        Raises:
            UnavailableError: the file is there and cannot be understood; nobody is let in then.
        """
        try:
            status = self.file.stat()
        except FileNotFoundError:
            self._stamp, self._known = None, ()
            return ()
        except OSError as error:
            raise self._damaged(error) from error
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
        if stamp != self._stamp:
            try:
                rows = json.loads(self.file.read_text("utf-8"))["tokens"]
                known = tuple(Token(**row) for row in rows)
                for one in known:
                    _ = ROLES.index(one.role)
                    if one.restrictions and (not one.filters or about_passages(one.filters)):
                        raise ValueError(f"what {one.id} is restricted to makes no part of the library")
            except (OSError, ValueError, TypeError, KeyError, CaprError) as error:
                raise self._damaged(error) from error
            self._stamp, self._known = stamp, known
        return self._known

    def find(self, given: str) -> Token | None:
        """The valid token that was given. Every known one is compared, however early one fits."""
        hashed, found = _hash(given), None
        for one in self.all():
            if hmac.compare_digest(one.hash, hashed):
                found = one
        return found if found is not None and found.state() == "valid" else None

    def _check(self, name: str, role: str, restrictions: Restrictions, days: float | None) -> None:
        wrong = []
        if not name.strip() or len(name) > 100 or not name.isprintable():
            wrong.append("a token needs the name of its holder. Fix: --name NAME, of at most 100 letters.")
        if role not in ROLES:
            wrong.append(f"there is no role {role!r}. Fix: use {', '.join(ROLES)}.")
        if restrictions and role != "reader":
            fix = "make it a reader, or leave the restrictions out"
            wrong.append(f"a {role} changes the whole library, so that it cannot be restricted to a part. Fix: {fix}.")
        if days is not None and not 0 < days < 36_500:
            wrong.append(f"a token cannot expire after {days:g} days. Fix: use a number above 0.")
        if about_passages(Filters.of(restrictions)):
            fact = "a token is restricted to whole documents, and this filter is about passages of them"
            wrong.append(f"{fact}. Fix: restrict it by patient, source, type, date, or other metadata.")
        if wrong:
            raise CaprError(" ".join(wrong))

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """One process at a time."""
        if not (self.file.parent / LIBRARY).is_file():
            raise CaprError(f"there is no library {self.file.parent}. Fix: make one with capr index.")
        descriptor = os.open(self.file.with_name(f"{FILE}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _write(self, tokens: Sequence[Token]) -> None:
        """All of the file or nothing, on disk when it ends, for the eyes of this user alone."""
        part = self.file.with_name(f"{FILE}.{os.getpid()}.part")
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump({"tokens": [asdict(one) for one in tokens]}, file, ensure_ascii=False, indent=1)
            file.flush()
            os.fsync(file.fileno())
        if self.file.exists():
            time.sleep(0.002)  # so that two changes never have the same time
        part.replace(self.file)
        folder = os.open(self.file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _damaged(self, error: Exception) -> UnavailableError:
        fix = "restore it from a backup; while it is so, nobody is let in"
        return UnavailableError(f"{self.file} cannot be understood ({error}). Fix: {fix}.")


def told(moment: datetime) -> str:
    """A moment as it is written: `2024-03-18T09:30:00Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()

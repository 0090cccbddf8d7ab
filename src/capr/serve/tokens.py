"""Tokens: their holders, roles and restrictions, stored as hashes in the state of the server."""

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
from typing import Any

from capr.documents import CaprError, UnavailableError
from capr.index import Filters
from capr.index.filtered import about_passages
from capr.serve.durable import sync_folder

PREFIX = "capr_"
ROLES = ("reader", "writer", "admin")  # each role includes those before it
BYTES = 32  # random bytes of a token; too many to guess, so a hash without salt is safe
Restrictions = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Token:
    """The record of a token, without the token itself.

    Attributes:
        id: the id of the token, to name and revoke it.
        name: the name of its holder.
        role: `reader`, `writer` or `admin`.
        hash: the SHA-256 hash of the token.
        restrictions: the conditions on every document that the token may see, as `Filters.of` reads them; empty for
            all documents.
        created: when the token was created.
        expires: when the token stops being valid; empty for never.
        revoked: when the token was revoked; empty if it was not.
    """

    id: str
    name: str
    role: str
    hash: str
    restrictions: Restrictions = field(default_factory=dict)
    created: str = ""
    expires: str = ""
    revoked: str = ""

    @cached_property
    def filters(self) -> Filters:
        """The restrictions as filters."""
        return Filters.of(self.restrictions, strict=False)

    def state(self, now: datetime | None = None) -> str:
        """Return `valid`, `revoked` or `expired`."""
        if self.revoked:
            return "revoked"
        return "expired" if self.expires and self.expires <= timestamp(now or datetime.now(UTC)) else "valid"


class TokenStore:
    """The tokens of a library, in a file that any number of processes may read and change.

    Every read sees the last change, so a revoked token stops working at once.

    Args:
        file: the file that `capr.serve.state` names; without it, there are no tokens.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._stamp: tuple[int, ...] | None = None
        self._tokens: tuple[Token, ...] = ()

    def create(
        self, name: str, role: str = "reader", restrictions: Restrictions | None = None, days: float | None = None
    ) -> tuple[str, Token]:
        """Create a token. Return it with its record; the token itself is not stored."""
        conditions = {field: list(values) for field, values in (restrictions or {}).items()}
        self.check(name, role, conditions, days)
        secret = PREFIX + secrets.token_urlsafe(BYTES)
        now = datetime.now(UTC)
        with self._changing():
            token = Token(
                id=secrets.token_hex(4),
                name=name.strip(),
                role=role,
                hash=_hash(secret),
                restrictions=conditions,
                created=timestamp(now),
                expires=timestamp(now + timedelta(days=days)) if days is not None else "",
            )
            self._write([*self.all(), token])
        return secret, token

    def revoke(self, name: str) -> list[Token]:
        """Revoke the token with an id, or all tokens of a holder. Return those that were not revoked before."""
        with self._changing():
            tokens = self.all()
            ids = [token.id for token in tokens if name in (token.id, token.name)]
            if not ids:
                raise CaprError(f"there is no token {name!r}. Fix: capr token list shows all.")
            now = timestamp(datetime.now(UTC))
            active = [token for token in tokens if token.id in ids and not token.revoked]
            self._write([replace(token, revoked=now) if token in active else token for token in tokens])
        return active

    def all(self) -> tuple[Token, ...]:
        """Return all tokens ever created, in the order of their creation.

        Raises:
            UnavailableError: the file is damaged. The server then rejects every caller.
        """
        try:
            status = self.file.stat()
        except FileNotFoundError:
            self._stamp, self._tokens = None, ()
            return ()
        except OSError as error:
            raise self._damaged(error) from error
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
        if stamp != self._stamp:
            try:
                rows = json.loads(self.file.read_text("utf-8"))["tokens"]
                tokens = tuple(_token(row) for row in rows)
                for token in tokens:
                    _ = ROLES.index(token.role)
                    if token.restrictions and (not token.filters or about_passages(token.filters)):
                        raise ValueError(f"the restrictions of {token.id} do not select documents")
            except (OSError, ValueError, TypeError, KeyError, CaprError) as error:
                raise self._damaged(error) from error
            self._stamp, self._tokens = stamp, tokens
        return self._tokens

    def find(self, secret: str) -> Token | None:
        """Return the record of a valid token, or None.

        The search compares all hashes even after a match, so its time does not depend on the position of the match.
        """
        secret_hash, match = _hash(secret), None
        for token in self.all():
            if hmac.compare_digest(token.hash, secret_hash):
                match = token
        return match if match is not None and match.state() == "valid" else None

    def check(self, name: str, role: str, restrictions: Restrictions, days: float | None) -> None:
        """Raise `CaprError` with every problem of a token that is to be created."""
        problems = []
        if not name.strip() or len(name) > 100 or not name.isprintable():
            problems.append("a token needs the name of its holder. Fix: --name NAME, of at most 100 letters.")
        if role not in ROLES:
            problems.append(f"there is no role {role!r}. Fix: use {', '.join(ROLES)}.")
        if restrictions and role != "reader":
            fix = "make it a reader, or leave the restrictions out"
            problems.append(f"a {role} changes the whole library, so it cannot be restricted to a part. Fix: {fix}.")
        if days is not None and not 0 < days < 36_500:
            problems.append(f"a token cannot expire after {days:g} days. Fix: use a number above 0.")
        if about_passages(Filters.of(restrictions)):
            fact = "restrictions select whole documents, and this filter selects passages"
            problems.append(f"{fact}. Fix: restrict it by patient, source, type, date, or other metadata.")
        if problems:
            raise CaprError(" ".join(problems))

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the lock of the file: one process at a time may change it."""
        descriptor = os.open(self.file.with_name(f"{self.file.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _write(self, tokens: Sequence[Token]) -> None:
        """Write the file atomically and durably, readable by this user alone."""
        part = self.file.with_name(f"{self.file.name}.{os.getpid()}.part")
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump({"tokens": [asdict(token) for token in tokens]}, file, ensure_ascii=False, indent=1)
            file.flush()
            os.fsync(file.fileno())
        if self.file.exists():
            time.sleep(0.002)  # so that two changes never have the same modification time
        part.replace(self.file)
        sync_folder(self.file.parent)

    def _damaged(self, error: Exception) -> UnavailableError:
        fix = "restore it from a backup; until then, the server rejects every caller"
        return UnavailableError(f"{self.file} is invalid ({error}). Fix: {fix}.")


def _token(row: Mapping[str, Any]) -> Token:
    """Return the token of a row of the file; `made` is the name of `created` in older versions."""
    return Token(**{"created" if name == "made" else name: value for name, value in row.items()})


def timestamp(moment: datetime) -> str:
    """Return a time in the form `2024-03-18T09:30:00Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()

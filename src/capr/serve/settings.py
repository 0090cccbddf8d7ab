"""Settings: everything that a server can be told, in one place."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path

VARIABLE = "CAPR_SERVE"  # by which the workers learn what the command was told


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to serve.

    Attributes:
        library: the folder of the library.
        encoder, ranker, discourse, reader: models instead of those that the library remembers or that ship; or "none".
        vocabulary: tables of names of your own.
        host, port, workers: where to listen, and in how many processes; port 0 for any that is free.
        require_token: whether nobody is served without a token, this machine included, even while there is none.
        audit: the folder of the audit trail; if not given, `audit` in the library.
        audit_queries: `keep` the text of queries in it, or `hash` them.
        audit_size: bytes after which a file of the trail is closed and the next begun.
        audit_days: days after which it is, whatever its size.
        deidentify: `rules`, or the `module:name` of a `Deidentifier`; empty for none.
        longest_query: characters of a query or question.
        largest_k: hits of one search.
        body: bytes of a request.
        upload: bytes of a request that adds documents, and characters of each document in its files.
        unpacked: bytes that all gzip files of such a request may unpack to.
        feedback: judgements that are kept of each token.
        body_seconds: for a client to send all of its request.
        rate, burst: requests a second that each token and each address may make for long, and at once.
        wrong_tokens: that an address may send in a minute before it has to wait.
        threads: that search and read at the same time, in each worker.
        waiting: requests that may wait for one of them.
        waiting_seconds: for how long.
        grace: seconds that what runs may take to end when the server is asked to stop.
        run: a folder in which the workers of one server tell each other of their metrics; made by the server.
    """

    library: str
    encoder: str | None = None
    ranker: str | None = None
    discourse: str | None = None
    reader: str | None = None
    vocabulary: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    require_token: bool = False
    audit: str = ""
    audit_queries: str = "keep"
    audit_size: int = 64_000_000
    audit_days: float = 30.0
    deidentify: str = ""
    longest_query: int = 2000
    largest_k: int = 100
    body: int = 1_000_000
    upload: int = 64_000_000
    unpacked: int = 256_000_000
    feedback: int = 100_000
    body_seconds: float = 30.0
    rate: float = 50.0
    burst: int = 200
    wrong_tokens: int = 20
    threads: int = 4
    waiting: int = 64
    waiting_seconds: float = 20.0
    grace: float = 30.0
    run: str = ""

    @property
    def folder(self) -> Path:
        """The folder of the library."""
        return Path(self.library)

    @property
    def audit_folder(self) -> Path:
        """The folder of the audit trail."""
        return Path(self.audit) if self.audit else self.folder / "audit"

    def keep(self) -> None:
        """Leaves the settings where the workers find them."""
        os.environ[VARIABLE] = json.dumps(asdict(self))

    @classmethod
    def kept(cls) -> Settings:
        """What `keep` has left."""
        given = json.loads(os.environ[VARIABLE])
        known = {field.name for field in fields(cls)}
        found = {name: value for name, value in given.items() if name in known}
        return cls(**{**found, "vocabulary": tuple(found.get("vocabulary", ()))})

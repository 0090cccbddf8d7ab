"""The settings of a server."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields

from capr.serve.state import State, open_state

VARIABLE = "CAPR_SERVE"  # passes the settings to the workers


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to serve.

    Attributes:
        library: the folder of the library.
        state: the folder of tokens, jobs, saved searches and the audit trail; `<library>.state` by default.
        encoder, ranker, discourse, reader: the folder of a model, or "none"; by default, the model of the library or
            the built-in one.
        vocabulary: the files with your own names.
        host, port, workers: the address, the port (0 for any free one) and the number of processes.
        require_token: whether every request needs a token, even from this machine while no token exists.
        audit: the folder of the audit trail; by default, the audit folder inside the state folder.
        audit_queries: `keep` to store the text of queries in the trail, `hash` to store their hashes.
        audit_size: the size in bytes at which a file of the trail is closed.
        audit_days: the age in days at which a file of the trail is closed.
        deidentify: `rules`, or the `module:name` of a `Deidentifier`; empty for none.
        max_query_length: the maximum number of characters of a query or question.
        max_k: the maximum number of hits of a search.
        max_body: the maximum number of bytes of a request.
        max_upload: the maximum number of bytes of a request that adds documents, and of characters of each document in
            its files.
        max_unpacked: the maximum number of bytes that all gzip files of a request may unpack to.
        max_judgements: the maximum number of judgements of a token.
        body_seconds: the time that a client has to send its request.
        rate, burst: the number of requests per second, and at once, of each token and each address.
        wrong_tokens: the number of wrong tokens per minute that an address may send without waiting.
        threads: the number of threads that search and read, in each worker.
        max_waiting: the number of requests that may wait for a thread.
        waiting_seconds: the time that a request may wait for a thread.
        grace: the seconds that running requests and jobs have to end when the server stops.
        run: the folder in which the workers of one server share their metrics; created by the server.
    """

    library: str
    state: str = ""
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
    max_query_length: int = 2000
    max_k: int = 100
    max_body: int = 1_000_000
    max_upload: int = 64_000_000
    max_unpacked: int = 256_000_000
    max_judgements: int = 100_000
    body_seconds: float = 30.0
    rate: float = 50.0
    burst: int = 200
    wrong_tokens: int = 20
    threads: int = 4
    max_waiting: int = 64
    waiting_seconds: float = 20.0
    grace: float = 30.0
    run: str = ""

    def open_state(self) -> State:
        """Open the state, and create its folder if it does not exist; see `capr.serve.state.open_state`."""
        return open_state(self.library, self.state, self.audit)

    def save_to_environment(self) -> None:
        """Store the settings in an environment variable for the workers."""
        os.environ[VARIABLE] = json.dumps(asdict(self))

    @classmethod
    def from_environment(cls) -> Settings:
        """Return the settings that `save_to_environment` has stored."""
        values = json.loads(os.environ[VARIABLE])
        names = {field.name for field in fields(cls)}
        known = {name: value for name, value in values.items() if name in names}
        return cls(**{**known, "vocabulary": tuple(known.get("vocabulary", ()))})

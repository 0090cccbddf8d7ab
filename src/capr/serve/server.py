"""The server: the library, the models, the limits and the logs that all requests of a process share."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from capr.annotate import Vocabulary
from capr.documents import CaprError, UnavailableError
from capr.index import SENTENCES
from capr.search import Library
from capr.serve.access import LOCAL
from capr.serve.audit import Audit, AuditRecord
from capr.serve.database import Job, ServerDatabase
from capr.serve.deidentify import load_deidentifier
from capr.serve.jobs import Jobs
from capr.serve.limits import RateLimit, WrongTokens
from capr.serve.metrics import INTERVAL, Metrics, resident
from capr.serve.problems import SOON, ProblemError, hide_folders
from capr.serve.settings import Settings
from capr.serve.tokens import TokenStore
from capr.serve.work_queue import WorkQueue

log = logging.getLogger("capr")


class Server:
    """The library with its models, and the tokens, limits, queues and logs of the server.

    The engine and the models are thread-safe: the engine opens one database connection per thread.

    Args:
        settings: the settings of the server.
        library: an open library, instead of the one that the settings name.
    """

    def __init__(self, settings: Settings, library: Library | None = None) -> None:
        self.settings = settings
        self.library = library or Library(
            settings.library,
            encoder=settings.encoder,
            ranker=settings.ranker,
            discourse=settings.discourse,
            reader=settings.reader,
            vocabulary=Vocabulary.load(*settings.vocabulary) if settings.vocabulary else None,
        )
        _ = self.library.engine  # raises an error now if there is none
        self.deidentifier = load_deidentifier(settings.deidentify)
        self.state = settings.open_state()
        self.tokens = TokenStore(self.state.tokens)
        self.tokens.all()  # raises an error now if the file is damaged
        self.database = ServerDatabase(self.state.database)
        trail = Path(settings.audit) if settings.audit else self.state.audit
        self.audit = Audit(trail, settings.audit_queries == "hash", settings.audit_size, settings.audit_days)
        self.heavy = WorkQueue(settings.threads, settings.max_waiting, settings.waiting_seconds)
        self.light = WorkQueue(max(2, settings.threads // 2), 4 * settings.max_waiting, settings.waiting_seconds)
        self.rate_limit = RateLimit(settings.rate, settings.burst)
        self.wrong_tokens = WrongTokens(settings.wrong_tokens)
        self.metrics = Metrics(Path(settings.run) if settings.run else None, self._gauges())
        self.jobs: Jobs | None = None
        self.stopping = asyncio.Event()
        self._ready = asyncio.Event()
        self._metrics_task: asyncio.Task[None] | None = None
        self._loader: threading.Thread | None = None
        self.models: dict[str, str] = {}  # the status of each model: "loaded", "none" or an error message

    def _gauges(self) -> dict[str, Callable[[], float]]:
        return {
            "capr_wrong_tokens_total": lambda: float(self.wrong_tokens.count),
            "capr_refused_total": lambda: float(self.heavy.refused + self.light.refused),
            "capr_work_running": lambda: float(self.heavy.running + self.light.running),
            "capr_work_waiting": lambda: float(self.heavy.waiting + self.light.waiting),
            "capr_resident_bytes": resident,
        }

    # --- start and stop ---

    async def start(self) -> None:
        """Start the jobs and the metrics, and load the models in the background."""
        limits = (self.settings.max_unpacked, self.settings.max_upload)
        self.jobs = Jobs(self.library, self.database, self.state.jobs, *limits, self._trace)
        loop = asyncio.get_running_loop()

        def load() -> None:
            try:
                self.load()
            finally:
                loop.call_soon_threadsafe(self._ready.set)

        self._loader = threading.Thread(target=load, name="capr-load", daemon=True)
        self._loader.start()
        self._metrics_task = asyncio.create_task(self._write_metrics())

    def _trace(self, job: Job, ids: Sequence[str]) -> None:
        """Record in the audit trail the documents that a job has added, and the holder of its token."""
        tokens = TokenStore(self.state.tokens).all()  # self.tokens belongs to the other thread
        name = next((token.name for token in tokens if token.id == job.who), LOCAL.name)
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        record = AuditRecord(documents=ids, more={"job": job.id})
        try:
            self.audit.append(self.audit.line(record, time=now, who=name, token=job.who, route="job"))
        except OSError as error:
            fix = "free space on the disk, and send the same documents again"
            raise UnavailableError(f"the audit trail cannot be written ({error.strerror}). Fix: {fix}.") from error

    async def _write_metrics(self) -> None:
        """Write the counts for the other workers at regular intervals."""
        while True:
            await asyncio.sleep(INTERVAL)
            self.metrics.write_counts()

    async def stop(self) -> None:
        """Wait for running requests and jobs, and close everything."""
        self.stopping.set()
        if self._metrics_task is not None:
            self._metrics_task.cancel()
        if self._loader is not None:  # a process that exits while a model loads aborts
            await asyncio.to_thread(self._loader.join)
        if self.jobs is not None:
            await asyncio.to_thread(self.jobs.close, self.settings.grace)
        await asyncio.to_thread(self.heavy.close)
        await asyncio.to_thread(self.light.close)
        await asyncio.to_thread(self.audit.close)
        self.metrics.write_counts()
        self.library.close()

    def load(self) -> None:
        """Load everything that a request may need, so that the first request is not slow."""
        started = time.perf_counter()
        library = self.library
        parts: dict[str, Callable[[], Any]] = {
            "library": lambda: library.search("a", 1, mode="lexical"),
            "vocabulary": lambda: library.suggest("a"),
            "encoder": lambda: library.models.encoder(library.index),
            "ranker": lambda: library.models.ranker,
            "discourse": lambda: library.models.discourse(library.index) if library.index.encoder(SENTENCES) else None,
            "reader": lambda: library.models.reader,
        }
        for name, part in parts.items():
            if self.stopping.is_set():
                return
            try:
                self.models[name] = "loaded" if part() is not None else "none"
            except CaprError as error:
                self.models[name] = hide_folders(str(error))
            except Exception:
                log.exception("%s cannot be loaded", name)
                self.models[name] = "it cannot be loaded; the log of the server has the error"
        log.info("loaded in %.1f s: %s", time.perf_counter() - started, self.models)

    @property
    def is_ready(self) -> bool:
        """Whether the server has loaded all models and can search the library."""
        return self._ready.is_set() and self.models.get("library") == "loaded" and not self.stopping.is_set()

    async def wait_until_loaded(self) -> None:
        """Wait until all models are loaded.

        Raises:
            ProblemError: 503 if that takes too long.
        """
        try:
            await asyncio.wait_for(self._ready.wait(), self.settings.waiting_seconds)
        except TimeoutError as error:
            fix = "try again in a moment; GET ready answers 200 when they are loaded"
            raise ProblemError(503, "the models are still loading", fix, SOON) from error

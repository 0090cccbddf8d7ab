"""The server: what all requests of one process share."""

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
from capr.index import Grain
from capr.search import Library
from capr.serve.access import LOCAL
from capr.serve.audit import Audit, Record
from capr.serve.deidentify import deidentifier
from capr.serve.desk import Desk, Job
from capr.serve.jobs import Jobs
from capr.serve.limits import Rate, WrongTokens
from capr.serve.metrics import EVERY, Metrics, resident
from capr.serve.problems import SOON, ProblemError, shown
from capr.serve.settings import Settings
from capr.serve.tokens import Tokens
from capr.serve.work import Work

log = logging.getLogger("capr")


class Server:
    """The library with its models, and all that stands before it.

    The engine has a connection to the database for each thread and may be asked by several at once; the models, too.

    Args:
        settings: how to serve.
        library: instead of the one that the settings name.
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
        _ = self.library.engine  # complains now if there is none
        self.deidentifier = deidentifier(settings.deidentify)
        self.tokens = Tokens(self.library.path)
        self.tokens.all()  # complains now if they cannot be understood
        self.desk = Desk(self.library.path)
        self.audit = Audit(
            settings.audit_folder, settings.audit_queries == "hash", settings.audit_size, settings.audit_days
        )
        self.heavy = Work(settings.threads, settings.waiting, settings.waiting_seconds)
        self.light = Work(max(2, settings.threads // 2), 4 * settings.waiting, settings.waiting_seconds)
        self.rate = Rate(settings.rate, settings.burst)
        self.wrong = WrongTokens(settings.wrong_tokens)
        self.metrics = Metrics(Path(settings.run) if settings.run else None, self._gauges())
        self.jobs: Jobs | None = None
        self.stopping = asyncio.Event()
        self._ready = asyncio.Event()
        self._counting: asyncio.Task[None] | None = None
        self.models: dict[str, str] = {}  # what is there, and why what is not is not

    def _gauges(self) -> dict[str, Callable[[], float]]:
        return {
            "capr_wrong_tokens_total": lambda: float(self.wrong.count),
            "capr_refused_total": lambda: float(self.heavy.refused + self.light.refused),
            "capr_work_running": lambda: float(self.heavy.running + self.light.running),
            "capr_work_waiting": lambda: float(self.heavy.waiting + self.light.waiting),
            "capr_resident_bytes": resident,
        }

    # --- beginning and ending ---

    async def start(self) -> None:
        """Begins to load the models, while requests are already taken."""
        self.jobs = Jobs(self.library, self.desk, self.settings.unpacked, self.settings.upload, self._trace)
        loop = asyncio.get_running_loop()

        def load() -> None:
            try:
                self.load()
            finally:
                loop.call_soon_threadsafe(self._ready.set)

        threading.Thread(target=load, name="capr-load", daemon=True).start()
        self._counting = asyncio.create_task(self._count())

    def _trace(self, job: Job, ids: Sequence[str]) -> None:
        """Tells in the audit trail which documents a job has kept, and for whom."""
        known = Tokens(self.library.path).all()  # of its own, since this is another thread
        name = next((token.name for token in known if token.id == job.who), LOCAL.name)
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        record = Record(documents=ids, more={"job": job.id})
        try:
            self.audit.append(self.audit.line(record, time=now, who=name, token=job.who, route="job"))
        except OSError as error:
            fix = "make room on the disk, and send the documents again that are not there yet"
            raise UnavailableError(f"the audit trail cannot be written ({error.strerror}). Fix: {fix}.") from error

    async def _count(self) -> None:
        """Tells the other workers what this one has counted, now and then."""
        while True:
            await asyncio.sleep(EVERY)
            self.metrics.keep()

    async def stop(self) -> None:
        """Ends what runs, and lets go of everything."""
        self.stopping.set()
        if self._counting is not None:
            self._counting.cancel()
        if self.jobs is not None:
            await asyncio.to_thread(self.jobs.close, self.settings.grace)
        await asyncio.to_thread(self.heavy.close)
        await asyncio.to_thread(self.light.close)
        await asyncio.to_thread(self.audit.close)
        self.metrics.keep()
        self.library.close()

    def load(self) -> None:
        """Loads everything that a request may need, so that the first one need not wait for it."""
        begun = time.perf_counter()
        library = self.library
        parts: dict[str, Callable[[], Any]] = {
            "library": lambda: library.search("a", 1, mode="lexical"),
            "vocabulary": lambda: library.suggest("a"),
            "encoder": lambda: library.models.encoder(library.index),
            "ranker": lambda: library.models.ranker,
            "discourse": lambda: (
                library.models.discourse(library.index) if library.index.encoder(Grain.SENTENCES) else None
            ),
            "reader": lambda: library.models.reader,
        }
        for name, part in parts.items():
            try:
                self.models[name] = "there" if part() is not None else "none"
            except CaprError as error:
                self.models[name] = shown(str(error))
            except Exception:
                log.exception("%s could not be loaded", name)
                self.models[name] = "it could not be loaded; the log of the server says why"
        log.info("loaded in %.1f s: %s", time.perf_counter() - begun, self.models)

    @property
    def is_ready(self) -> bool:
        """Whether everything is loaded and the library can be searched."""
        return self._ready.is_set() and self.models.get("library") == "there" and not self.stopping.is_set()

    async def loaded(self) -> None:
        """Waits until everything is loaded; 503 if that takes too long."""
        try:
            await asyncio.wait_for(self._ready.wait(), self.settings.waiting_seconds)
        except TimeoutError as error:
            fix = "try again in a moment; GET ready tells when"
            raise ProblemError(503, "the models are still being loaded", fix, SOON) from error

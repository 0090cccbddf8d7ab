"""Jobs: add documents in the background, one job at a time among all workers."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from capr.documents import CaprError, Document, Notice, Problem, UnavailableError, Unpacked, read
from capr.search import Library
from capr.serve.database import MAX_PROBLEMS, Job, ServerDatabase
from capr.serve.problems import hide_folders
from capr.serve.tokens import timestamp

log = logging.getLogger("capr")
DOCUMENTS = "documents.jsonl"
LOST = timedelta(minutes=10)  # the age at which a job without documents on disk counts as interrupted
POLL = 1.0  # seconds between two looks for jobs that other workers created
UNPACKED_FIX = "send fewer files in each request, or smaller ones, or allow more (capr serve --max-unpacked-mb)"
LONGEST_FIX = "send it in parts, or allow more (capr serve --max-upload-mb)"
INTERRUPTED = "the job was interrupted. Fix: send the same documents again; those already added stay unchanged."


class StoppedError(Exception):
    """The server stops, and the job may not go on."""


class Jobs:
    """Runs jobs in a background thread.

    Only the process that holds the lock runs jobs. A job in the state `running` while no process holds the lock was
    interrupted.

    Args:
        library: the library to which jobs add documents.
        database: the database of jobs.
        folder: the folder for the documents of jobs (`State.jobs`), created with the first job.
        unpacked: the most bytes that the gzip files of a job may unpack to; no limit by default.
        longest: the most characters of a document in a file; no limit by default.
        trace: called after each commit with the job and the ids of the committed documents.
    """

    def __init__(
        self,
        library: Library,
        database: ServerDatabase,
        folder: Path,
        unpacked: int | None = None,
        longest: int | None = None,
        trace: Callable[[Job, Sequence[str]], None] = lambda *_: None,
    ) -> None:
        self._library, self._database, self._folder = library, database, folder
        self._unpacked, self._longest, self._trace = unpacked, longest, trace
        self._new_job, self._stopping, self._aborting = threading.Event(), threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work, name="capr-jobs", daemon=True)
        self._thread.start()

    def add(self, who: str, documents: Sequence[Mapping[str, Any]], files: Mapping[str, bytes], replace: bool) -> Job:
        """Create a job, and write its documents to disk."""
        job = self._database.create_job(who, replace, len(documents) if not files else None)
        folder = self._folder / f"{job.id}.part"
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            folder.mkdir(mode=0o700)
            for name, content in files.items():
                _write(folder / name, content)
            if documents:
                lines = [json.dumps(document, ensure_ascii=False) + "\n" for document in documents]
                _write(folder / DOCUMENTS, "".join(lines).encode())
            folder.rename(self._folder / job.id)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            problem = (
                f"the documents cannot be stored ({error.strerror}). Fix: free space on the disk, and send them again."
            )
            self._database.update_job(job.id, state="failed", problems=[problem])
            raise UnavailableError(problem) from error
        self._new_job.set()
        return job

    def job(self, id: str) -> Job:
        """Return the current state of a job."""
        job = self._database.job(id)
        if job.state == "running":
            with self._try_lock() as is_locked:
                if is_locked:
                    self._mark_interrupted_jobs()
                    return self._database.job(id)
        return job

    def close(self, grace: float) -> None:
        """Wait for the running job. After `grace` seconds, interrupt it at its next commit."""
        self._stopping.set()
        self._new_job.set()
        self._thread.join(grace)
        self._aborting.set()
        self._thread.join(5)

    # --- in the thread ---

    def _work(self) -> None:
        while not self._stopping.is_set():
            self._new_job.wait(POLL)
            self._new_job.clear()
            try:
                self._run_all()
            except Exception:
                log.exception("a job cannot be run")

    def _run_all(self) -> None:
        if not self._database.jobs("waiting", "running"):
            return
        with self._try_lock() as is_locked:
            if not is_locked:
                return
            self._mark_interrupted_jobs()
            while not self._stopping.is_set() and (waiting := self._database.jobs("waiting")):
                ready = [job for job in waiting if self._is_written(job)]
                if not ready:
                    return  # a process is still writing the documents, or died while it did
                self._run(ready[0])

    @contextmanager
    def _try_lock(self) -> Iterator[bool]:
        """Hold the lock of jobs if it is free. Yield whether it was."""
        descriptor = os.open(self._folder.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            yield False
            return
        try:
            yield True
        finally:
            os.close(descriptor)

    def _mark_interrupted_jobs(self) -> None:
        """Mark the jobs of processes that died as interrupted. The caller holds the lock."""
        oldest = timestamp(datetime.now(UTC) - LOST)
        lost = [job for job in self._database.jobs("waiting") if job.created < oldest and not self._is_written(job)]
        for job in [*self._database.jobs("running"), *lost]:
            self._database.update_job(job.id, state="interrupted", problems=[*job.problems, INTERRUPTED])
            for name in (job.id, f"{job.id}.part"):
                shutil.rmtree(self._folder / name, ignore_errors=True)

    def _is_written(self, job: Job) -> bool:
        return (self._folder / job.id).is_dir()

    def _run(self, job: Job) -> None:
        problems: list[str] = []
        problem_count = done = 0
        counts = {"added": 0, "replaced": 0, "unchanged": 0}
        self._database.update_job(job.id, state="running")

        def add_problem(problem: Problem) -> None:
            nonlocal problem_count
            if not isinstance(problem, Notice):
                problem_count += 1
                if problem_count <= MAX_PROBLEMS:
                    problems.append(hide_folders(str(problem)))

        def report_commit(ids: Sequence[str]) -> None:
            nonlocal done
            done += len(ids)
            self._trace(job, ids)
            self._database.update_job(
                job.id, done=done, problems=problems, more_problems=max(0, problem_count - MAX_PROBLEMS)
            )
            if self._aborting.is_set():
                raise StoppedError

        try:
            folder = self._folder / job.id
            unpacked = Unpacked(self._unpacked, UNPACKED_FIX)
            documents = _documents(folder, add_problem, unpacked, self._longest)
            outcome = self._library.add(documents, replace=job.replace, on_commit=report_commit, on_problem=add_problem)
            counts = {name: getattr(outcome, name) for name in counts}
            state = "done"
        except StoppedError:
            state = "interrupted"
            problems.append(INTERRUPTED)
        except (CaprError, OSError) as error:
            state = "failed"
            problems.append(hide_folders(str(error)))
        except Exception:
            log.exception("the job %s failed", job.id)
            state = "failed"
            problems.append("an internal error occurred. Fix: look in the log of the server, and report it.")
        done = max(done, sum(counts.values()) + problem_count) if state == "done" else done
        total = done if job.total is None and state == "done" else job.total
        more = max(0, problem_count - MAX_PROBLEMS)
        self._database.update_job(
            job.id, state=state, done=done, total=total, problems=problems, more_problems=more, **counts
        )
        shutil.rmtree(self._folder / job.id, ignore_errors=True)


def _write(file: Path, content: bytes) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(content)


def _documents(
    folder: Path, on_problem: Callable[[Problem], None], unpacked: Unpacked, longest: int | None
) -> Iterator[Document]:
    """Yield the documents of a job: those sent as JSON, and those of the uploaded files."""

    def report(problem: Problem) -> None:
        on_problem(replace(problem, file=Path(problem.file).name))

    for path in sorted(folder.iterdir()):
        if path.name == DOCUMENTS:
            with path.open(encoding="utf-8") as lines:
                yield from (Document(**json.loads(line)) for line in lines)
            continue
        for document in read(path, on_problem=report, unpacked=unpacked):
            if longest is not None and len(document.text) > longest:
                fact = f"the document has {len(document.text):,} characters, and {longest:,} are allowed"
                on_problem(Problem(fact, LONGEST_FIX, path.name, record=document.id))
                continue
            metadata = {**document.metadata, "file": path.name}
            if metadata.get("source") in (
                folder.name,
                path.name,
            ):  # the reader derived it from the path, and the sender did not set it
                del metadata["source"]
            yield replace(document, metadata=metadata)

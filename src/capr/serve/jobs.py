"""Jobs: adds documents in the background, one job at a time, whichever worker was asked."""

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
from capr.serve.desk import PROBLEMS, Desk, Job
from capr.serve.problems import shown
from capr.serve.tokens import told

log = logging.getLogger("capr")
LOCK, FOLDER, DOCUMENTS = "jobs.lock", "jobs", "documents.jsonl"
LOST = timedelta(minutes=10)  # after which documents that are not on disk will not come
POLL = 1.0  # seconds after which a worker looks whether another has left something to do
UNPACKED_FIX = "send fewer files in each request, or smaller ones, or allow more (capr serve --unpacked)"
LONGEST_FIX = "send it in parts, or allow more (capr serve --upload)"
INTERRUPTED = "it was interrupted. Fix: send the same documents again; what was kept is kept, and is not done twice."


class StoppedError(Exception):
    """The server is asked to stop."""


class Jobs:
    """Runs jobs. Whoever holds the lock does so; a job that runs while nobody holds it was interrupted.

    Args:
        library: to add to.
        desk: where jobs are known.
        unpacked: bytes that the gzip files of a job may unpack to; any number if not given.
        longest: characters of a document in a file; any number if not given.
        trace: told of each job the ids of documents that it has just kept.
    """

    def __init__(
        self,
        library: Library,
        desk: Desk,
        unpacked: int | None = None,
        longest: int | None = None,
        trace: Callable[[Job, Sequence[str]], None] = lambda *_: None,
    ) -> None:
        self._library, self._desk, self._folder = library, desk, library.path / FOLDER
        self._unpacked, self._longest, self._trace = unpacked, longest, trace
        self._wanted, self._stopping, self._hurrying = threading.Event(), threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work, name="capr-jobs", daemon=True)
        self._thread.start()

    def add(self, who: str, documents: Sequence[Mapping[str, Any]], files: Mapping[str, bytes], replace: bool) -> Job:
        """A new job, with its documents on disk."""
        job = self._desk.new_job(who, replace, len(documents) if not files else None)
        folder = self._folder / f"{job.id}.part"
        try:
            folder.mkdir(mode=0o700, parents=True)
            for name, content in files.items():
                (folder / name).write_bytes(content)
            if documents:
                lines = [json.dumps(document, ensure_ascii=False) + "\n" for document in documents]
                (folder / DOCUMENTS).write_text("".join(lines), "utf-8")
            folder.rename(self._folder / job.id)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            problem = f"the documents cannot be kept ({error.strerror}). Fix: make room on the disk, and send them."
            self._desk.tell(job.id, state="failed", problems=[problem])
            raise UnavailableError(problem) from error
        self._wanted.set()
        return job

    def job(self, id: str) -> Job:
        """A job as it is now."""
        job = self._desk.job(id)
        if job.state == "running":
            with self._locked() as mine:
                if mine:
                    self._interrupted()
                    return self._desk.job(id)
        return job

    def close(self, grace: float) -> None:
        """Lets the job that runs end; after some seconds, it is interrupted at its next step."""
        self._stopping.set()
        self._wanted.set()
        self._thread.join(grace)
        self._hurrying.set()
        self._thread.join(5)

    # --- in the thread ---

    def _work(self) -> None:
        while not self._stopping.is_set():
            self._wanted.wait(POLL)
            self._wanted.clear()
            try:
                self._run_all()
            except Exception:
                log.exception("a job could not be run")

    def _run_all(self) -> None:
        if not self._desk.jobs("waiting", "running"):
            return
        with self._locked() as mine:
            if not mine:
                return
            self._interrupted()
            while not self._stopping.is_set() and (waiting := self._desk.jobs("waiting")):
                ready = [job for job in waiting if self._is_written(job)]
                if not ready:
                    return  # its documents are still being written, or were lost with the process that did
                self._run(ready[0])

    @contextmanager
    def _locked(self) -> Iterator[bool]:
        """Whether nobody else, in this process or in another, runs a job while this lasts."""
        descriptor = os.open(self._library.path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
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

    def _interrupted(self) -> None:
        """Says so of jobs that ran, or whose documents were written, in a process that is no more; the lock is held."""
        long_ago = told(datetime.now(UTC) - LOST)
        lost = [job for job in self._desk.jobs("waiting") if job.made < long_ago and not self._is_written(job)]
        for job in [*self._desk.jobs("running"), *lost]:
            self._desk.tell(job.id, state="interrupted", problems=[*job.problems, INTERRUPTED])
            for name in (job.id, f"{job.id}.part"):
                shutil.rmtree(self._folder / name, ignore_errors=True)

    def _is_written(self, job: Job) -> bool:
        return (self._folder / job.id).is_dir()

    def _run(self, job: Job) -> None:
        problems: list[str] = []
        count = done = 0
        counted = {"added": 0, "replaced": 0, "unchanged": 0}
        self._desk.tell(job.id, state="running")

        def met(problem: Problem) -> None:
            nonlocal count
            if not isinstance(problem, Notice):
                count += 1
                if count <= PROBLEMS:
                    problems.append(shown(str(problem)))

        def kept(ids: Sequence[str]) -> None:
            nonlocal done
            done += len(ids)
            self._trace(job, ids)
            self._desk.tell(job.id, done=done, problems=problems, more_problems=max(0, count - PROBLEMS))
            if self._hurrying.is_set():
                raise StoppedError

        try:
            folder = self._folder / job.id
            unpacked = Unpacked(self._unpacked, UNPACKED_FIX)
            documents = _documents(folder, met, unpacked, self._longest)
            outcome = self._library.add(documents, replace=job.replace, on_commit=kept, on_problem=met)
            counted = {name: getattr(outcome, name) for name in counted}
            state = "done"
        except StoppedError:
            state = "interrupted"
            problems.append(INTERRUPTED)
        except (CaprError, OSError) as error:
            state = "failed"
            problems.append(shown(str(error)))
        except Exception:
            log.exception("the job %s failed", job.id)
            state = "failed"
            problems.append("something went wrong inside. Fix: look into the log of the server, and report it.")
        done = max(done, sum(counted.values()) + count) if state == "done" else done
        total = done if job.total is None and state == "done" else job.total
        more = max(0, count - PROBLEMS)
        self._desk.tell(job.id, state=state, done=done, total=total, problems=problems, more_problems=more, **counted)
        shutil.rmtree(self._folder / job.id, ignore_errors=True)


def _documents(
    folder: Path, met: Callable[[Problem], None], unpacked: Unpacked, longest: int | None
) -> Iterator[Document]:
    """The documents of a job: those that were sent as they are, and those of files, without the folder of the job."""

    def in_file(problem: Problem) -> None:
        met(replace(problem, file=Path(problem.file).name))

    for path in sorted(folder.iterdir()):
        if path.name == DOCUMENTS:
            with path.open(encoding="utf-8") as lines:
                yield from (Document(**json.loads(line)) for line in lines)
            continue
        for document in read(path, on_problem=in_file, unpacked=unpacked):
            if longest is not None and len(document.text) > longest:
                fact = f"the document has {len(document.text):,} characters, and {longest:,} are allowed"
                met(Problem(fact, LONGEST_FIX, path.name, record=document.id))
                continue
            metadata = {**document.metadata, "file": path.name}
            if metadata.get("source") in (folder.name, path.name):  # nobody has said it
                del metadata["source"]
            yield replace(document, metadata=metadata)

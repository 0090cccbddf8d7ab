"""The state of a server: the files that are not part of the library, and the layout of their folder.

Older versions kept these files in the folder of the library; this module moves them once.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capr.documents import BusyError, CaprError
from capr.index.engines import is_library, not_a_library
from capr.serve.durable import sync_folder
from capr.serve.moves import COPIED, PART, finish_move, move, restrict

log = logging.getLogger("capr")
SUFFIX = ".state"  # of the folder beside the library
OWNER, LOCK = "state.json", "state.lock"
TOKENS, DATABASE, JOBS, AUDIT = "tokens.json", "server.db", "jobs", "audit"
OLD_DATABASE, OLD_LOCK = "desk.db", "desk.lock"  # of an older version
PREFIXES = (OWNER, LOCK, TOKENS, "server.", "desk.", JOBS, AUDIT, "lost+found")  # of the names of files in the folder
# The trail moves first. A server of an older version that still runs cannot write it any more, and rejects every
# request before it could find that there are no tokens and accept everybody.
MOVED = {AUDIT: AUDIT, JOBS: JOBS, OLD_DATABASE: DATABASE, TOKENS: TOKENS}  # the new name for each old one
LOCKS = {"jobs.lock": OLD_DATABASE, OLD_LOCK: OLD_DATABASE, f"{TOKENS}.lock": TOKENS}  # the file of each lock file
REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # a Path writes opensearch://host as opensearch:/host
SECRET = re.compile(r"(?<=://)[^/@]*@")  # a name and a password in an address


@dataclass(frozen=True)
class State:
    """The files of a server, in a folder that only its user may read (0700, files 0600).

    `state.json` names the library of the state, and the folder of the audit trail if it is elsewhere. A process holds
    `state.lock` while it opens the folder. Each file below has a lock file for writers beside it, and `server.db` the
    files that SQLite needs while it is open.
    """

    folder: Path
    trail: str = ""  # the folder of the audit trail, if it is elsewhere

    @property
    def tokens(self) -> Path:
        """The JSON file of the tokens: hashes with holders, roles and restrictions."""
        return self.folder / TOKENS

    @property
    def database(self) -> Path:
        """The SQLite database of jobs, saved searches and feedback."""
        return self.folder / DATABASE

    @property
    def jobs(self) -> Path:
        """The folder of the documents and uploaded files of jobs that have not ended."""
        return self.folder / JOBS

    @property
    def audit(self) -> Path:
        """The folder of the audit trail."""
        return Path(self.trail) if self.trail else self.folder / AUDIT


def state_folder(library: str | Path, state: str | Path = "") -> Path:
    """Return the folder of the state: `state`, or by default `<library>.state` beside the library.

    Raises:
        CaprError: `state` is empty, and the library is not on this machine.
    """
    if state:
        return Path(state).resolve()
    if _is_remote(library):
        fact = f"the state of {_public_name(library)} has no folder: the library is not on this machine"
        raise CaprError(f"{fact}. Fix: name a folder for tokens, jobs and the audit trail with --state.")
    folder = Path(library).resolve()
    return folder.parent / f"{folder.name}{SUFFIX}"


def open_state(
    library: str | Path, state: str | Path = "", audit: str | Path | None = None, make: bool = True
) -> State:
    """Open the state of a library, and create its folder if it does not exist.

    If an older version kept files in the folder of the library, move them once and log it. Several processes may do
    this at the same time. A killed process leaves every file in one of the two folders, and the next one continues.

    Args:
        library: the folder of the library, or its address if it is on another machine.
        state: the folder of the state; by default, the one beside the library.
        audit: the folder of an audit trail outside the state, which does not move; empty for a trail in the state;
            None for the trail that the last server used.
        make: whether to create the folder even if there are no files to move.

    Raises:
        BusyError: a server of an older version is using the files to move.
        CaprError: the library does not exist; or the folder cannot be written, belongs to another library, or
            contains other files.
    """
    folder = state_folder(library, state)
    trail = _recorded_trail(folder) if audit is None else audit and str(Path(audit).resolve())
    home = None if _is_remote(library) else Path(library).resolve()
    old_files = _old_files(home, trail) if home is not None else []
    if home is not None and not (folder.is_dir() or old_files or is_library(home)):
        raise not_a_library(Path(library))
    if folder == home:
        fact = f"the folder of the library, {folder}, cannot be the folder of its state as well"
        raise CaprError(f"{fact}. Fix: name another folder with --state, or omit --state for {folder}{SUFFIX}.")
    if not (make or old_files or folder.is_dir()):
        return State(folder, str(trail))
    try:
        _make_folder(folder, home)
        with _locked(folder / LOCK):
            _give_to_owner(folder / LOCK, home)
            _claim(folder, library, home)
            if trail != _recorded_trail(folder):
                _write_record(folder / OWNER, {**_read_record(folder / OWNER), AUDIT: str(trail)}, home)
            _rename_old_database(folder)
            if home is not None:
                _move_old_files(home, folder, _old_files(home, trail))
    except OSError as error:
        file = f", at {error.filename}" if error.filename and error.filename != str(folder) else ""
        fact = f"the state of the library cannot be stored in {folder} ({error.strerror or error}{file})"
        fix = "give this user write access there (in a systemd unit: ReadWritePaths), or name another folder"
        raise CaprError(f"{fact}. Fix: {fix} with --state.") from error
    return State(folder, str(trail))


# --- the folder ---


def _make_folder(folder: Path, home: Path | None) -> None:
    """Create the folder, readable by this user alone. Reject an existing folder with other files."""
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        _give_to_owner(folder, home)
    if not (folder / OWNER).exists():
        other_files = sorted(path.name for path in folder.iterdir() if not path.name.startswith(PREFIXES))
        if other_files:
            fact = f"{folder} holds other files ({', '.join(other_files[:3])}), and the state needs a folder of its own"
            raise CaprError(f"{fact}. Fix: name an empty folder or a new one with --state.")
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


def _give_to_owner(path: Path, home: Path | None) -> None:
    """Give a file that root has created to the owner of the library, because the server probably runs as that user."""
    if os.geteuid() == 0 and home is not None and home.exists():
        owner = home.stat()
        os.chown(path, owner.st_uid, owner.st_gid)


@contextmanager
def _locked(file: Path, make: bool = True, wait: bool = True) -> Iterator[None]:
    """Hold a lock file.

    Args:
        file: the lock file.
        make: whether to create the file if it does not exist; without it, nothing holds the lock.
        wait: whether to wait for the lock.

    Raises:
        BlockingIOError: another process holds the lock, and `wait` is false.
    """
    try:
        descriptor = os.open(file, os.O_RDWR | (os.O_CREAT if make else 0), 0o600)
    except FileNotFoundError:
        if make:
            raise
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)


def _claim(folder: Path, library: str | Path, home: Path | None) -> None:
    """Record the library of the folder, unless another library is recorded.

    Raises:
        CaprError: the folder belongs to another library, or the record is damaged.
    """
    file, name = folder / OWNER, _public_name(library)
    if home is not None:  # a relative path stays valid if library and state move together
        name = f"../{home.name}" if home.parent == folder.parent else str(home)
    try:
        recorded = str(_read_record(file)["library"])
    except FileNotFoundError:
        return _write_record(file, {"library": name}, home)
    except (ValueError, KeyError, TypeError) as error:
        fact = f"{file}, which names the library of this state, is damaged ({error})"
        raise CaprError(f"{fact}. Fix: remove it; the next command writes it for its library.") from error
    if recorded == name:
        return None
    other = None if _is_remote(recorded) else (folder / recorded).resolve()
    if home is not None and other == home:
        return None
    if other is not None and not other.exists():
        log.warning("%s belonged to %s, which does not exist any more; now it belongs to %s", folder, other, library)
        return _write_record(file, {**_read_record(file), "library": name}, home)
    fact = f"{folder} is the state of the library {other or recorded}, not of {_public_name(library)}"
    fix = f"name another folder with --state; if {_public_name(library)} is a copy of that library, remove {file}"
    raise CaprError(f"{fact}. Fix: {fix}.")


def _read_record(file: Path) -> dict[str, Any]:
    """Return the contents of `state.json`."""
    record: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return record


def _recorded_trail(folder: Path) -> str:
    """Return the folder of the audit trail that the last server used; empty if it is in the state."""
    try:
        return str(_read_record(folder / OWNER).get(AUDIT, ""))
    except (OSError, ValueError, AttributeError):  # `_claim` reports a damaged record
        return ""


def _write_record(file: Path, record: Mapping[str, Any], home: Path | None) -> None:
    part = file.with_name(f"{file.name}{PART}")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as opened:
        json.dump(record, opened, ensure_ascii=False)
        opened.flush()
        os.fsync(opened.fileno())
    _give_to_owner(part, home)
    part.replace(file)
    sync_folder(file.parent)


def _is_remote(library: str | Path) -> bool:
    return REMOTE.match(str(library)) is not None


def _public_name(library: str | Path) -> str:
    """Return the address of a library without its password, or its folder."""
    if not _is_remote(library):
        return str(library)
    return SECRET.sub("", re.sub(":/+", "://", str(library), count=1))


# --- files of an older version ---


def _rename_old_database(folder: Path) -> None:
    """Give the database in the folder of the state its new name, unless there is one of that name.

    Raises:
        BusyError: a server of an older version is using the database.
        CaprError: the database is damaged.
    """
    old, new = folder / OLD_DATABASE, folder / DATABASE
    if not old.exists() or new.exists():
        return
    with _locked(folder / OLD_LOCK, make=False):
        _checkpoint(old)
        restrict(old)
        old.rename(new)
        (folder / OLD_LOCK).unlink(missing_ok=True)
    sync_folder(folder)
    log.warning("renamed %s of an older version to %s", old, new.name)


def _old_files(home: Path, audit: str | Path) -> list[str]:
    """Return the names of the state's files in the folder of a library, in the order in which they move."""
    keeps_trail = audit and Path(audit).resolve() == (home / AUDIT).resolve()
    names = [name for name in MOVED if not (keeps_trail and name == AUDIT)]
    return [name for name in names if (home / name).exists() or (home / f"{name}{COPIED}").exists()]


def _move_old_files(home: Path, folder: Path, names: Sequence[str]) -> None:
    """Move files from the library to the state, unless the state has files of the same name."""
    for name in names:
        finish_move(home / name, folder / MOVED[name])
    remaining = [
        name for name in names if (home / name).exists() and (home / name).resolve() != (folder / name).resolve()
    ]
    moving = [name for name in remaining if not (folder / MOVED[name]).exists()]
    if moving:
        with _lock_old_files(home):
            for name in moving:
                if name == OLD_DATABASE:
                    _checkpoint(home / name)
                restrict(home / name)
                move(home / name, folder / MOVED[name])
        log.warning("moved %s of an older version from %s to %s", ", ".join(moving), home, folder)
    if unused := [name for name in remaining if name not in moving]:
        log.warning("capr ignores %s in %s, because %s has its own", ", ".join(unused), home, folder)
    for name, file in LOCKS.items():
        if not (home / file).exists():
            (home / name).unlink(missing_ok=True)
    if not (home / TOKENS).exists():
        for part in home.glob(f"{TOKENS}.*{PART}"):  # left by a killed process
            part.unlink(missing_ok=True)


@contextmanager
def _lock_old_files(home: Path) -> Iterator[None]:
    """Hold all locks of an older version, so that none of its processes changes the files.

    Raises:
        BusyError: a server of an older version is adding documents.
    """
    with ExitStack() as locks:
        try:
            locks.enter_context(_locked(home / "jobs.lock", make=False, wait=False))
        except BlockingIOError as error:
            raise _busy(home) from error
        for name in (OLD_LOCK, f"{TOKENS}.lock", f"{AUDIT}/lock"):
            locks.enter_context(_locked(home / name, make=False))
        yield


def _checkpoint(file: Path) -> None:
    """Write the -wal file of a database into its main file."""
    try:
        with closing(sqlite3.connect(file, timeout=20, isolation_level=None)) as database:
            mode = database.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
    except sqlite3.OperationalError as error:
        raise _busy(file.parent) if "locked" in str(error) else _damaged(file, error) from error
    except sqlite3.DatabaseError as error:
        raise _damaged(file, error) from error
    if mode != "delete":
        raise _busy(file.parent)


def _busy(home: Path) -> BusyError:
    fact = f"the jobs and tokens in {home} must move, but a server of an older version runs"
    return BusyError(f"{fact}. Fix: stop that server first.")


def _damaged(file: Path, error: Exception) -> CaprError:
    fix = f"restore {file.name} from a backup, or remove it, and lose jobs, saved searches and feedback"
    return CaprError(f"{file} cannot be read ({error}), so it does not move. Fix: {fix}.")

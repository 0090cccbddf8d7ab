"""Moves files and folders atomically, also to another file system."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from capr.serve.durable import sync_folder

PART, COPIED = ".part", ".moved"  # an incomplete copy on another file system, and the source of a complete one


def finish_move(source: Path, target: Path) -> None:
    """Finish or revert the move of a killed process: afterwards, either source or target is complete."""
    copied = source.with_name(f"{source.name}{COPIED}")
    if copied.exists():
        if target.exists():
            _remove(copied)
        else:
            copied.rename(source)
    elif source.is_symlink() and target.exists() and source.resolve() == target.resolve():
        source.unlink()


def move(source: Path, target: Path) -> None:
    """Move a file or a folder atomically: by renaming it, or by copying it to another file system."""
    if source.is_symlink() or source.is_mount():  # a trail on a disk of its own stays there
        target.symlink_to(source.resolve())
        if source.is_symlink():
            source.unlink()
    else:
        try:
            source.rename(target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _copy_to_file_system(source, target)
    sync_folder(source.parent)
    sync_folder(target.parent)


def _copy_to_file_system(source: Path, target: Path) -> None:
    part, copied = target.with_name(f"{target.name}{PART}"), source.with_name(f"{source.name}{COPIED}")
    _remove(part)
    _copy(source, part)
    sync_folder(part.parent)
    source.rename(copied)  # after a kill before the next rename, `finish_move` reverts this
    sync_folder(copied.parent)
    part.rename(target)
    sync_folder(target.parent)
    _remove(copied)


def _copy(source: Path, target: Path) -> None:
    """Copy a file or a folder with its owner, and sync it to disk."""
    if source.is_dir():
        target.mkdir(mode=0o700)
        for path in source.iterdir():
            _copy(path, target / path.name)
        sync_folder(target)
    else:
        shutil.copy2(source, target)
        with target.open("rb") as file:
            os.fsync(file.fileno())
    if os.geteuid() == 0:
        owner = source.stat()
        os.chown(target, owner.st_uid, owner.st_gid)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def restrict(path: Path) -> None:
    """Make files and folders readable by this user alone."""
    if path.is_symlink():
        return
    for entry in (path, *path.rglob("*")):
        if not entry.is_symlink():
            entry.chmod(0o700 if entry.is_dir() else 0o600)

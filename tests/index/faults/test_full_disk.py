"""A full disk gives a clear error and loses no committed document; with room again, adding continues."""

import errno
import os
import sqlite3

import pytest

import capr.index.embedded.vectors
import capr.index.embedded.words
from capr.documents import CaprError

DOCUMENTS = [[f"d{number}", 1] for number in range(40)]


def check(lines):
    """Check what a process logged that met a full disk and then had room again; return its first line."""
    assert [line["crashed"] for line in lines if "crashed" in line] == []
    before, after = lines[0], lines[-1]
    (ids,) = [line["there"] for line in lines if "there" in line]
    assert before["refused"] is None or "Fix: " in before["refused"], before
    assert before["refused"] or before["warned"] or len(before["kept"]) == len(DOCUMENTS)
    assert all("Fix: " in line["search"] for line in lines if "search" in line)
    assert set(before["kept"]) <= set(ids)
    assert (after["wrong"], after["missing"]) == ([], [])
    assert (after["problems"], after["notices"]) == ([], [])
    assert after["found"] == [DOCUMENTS[-1][0]]
    return before


@pytest.mark.parametrize("same", [True, False], ids=["same-process", "new-process"])
@pytest.mark.parametrize("encoder", [None, "fake-a"])
@pytest.mark.parametrize("limit", [1_000, 20_000, 60_000, 100_000, 200_000, 400_000])
def test_a_limit_on_file_size_loses_nothing(starter, memory, faults, limit, encoder, same):
    if (limit in (20_000, 100_000) or not encoder) and faults < 100:
        pytest.skip("only with CAPR_FAULTS=100")
    arguments = {"path": memory, "documents": DOCUMENTS, "encoder": encoder, "same": same}
    check(starter.start("fill", limit=limit, **arguments).finish())


@pytest.mark.parametrize("same", [True, False], ids=["same-process", "new-process"])
@pytest.mark.parametrize("encoder", [None, "fake-a"])
@pytest.mark.parametrize("size", ["16k", "100k", "200k", "300k", "400k", "600k", "800k", "1200k"])
def test_a_full_disk_loses_nothing(starter, tmp_path, faults, size, encoder, same):
    if (size in ("100k", "300k", "600k") or not encoder) and faults < 100:
        pytest.skip("only with CAPR_FAULTS=100")
    (line,) = starter.start("mount", path=tmp_path).finish()
    if line["refused"]:
        pytest.skip(f"small disks are not permitted here ({line['refused']})")
    arguments = {"path": tmp_path, "documents": DOCUMENTS, "encoder": encoder, "same": same}
    before = check(starter.start("fill", tmpfs=size, **arguments).finish())
    if size == "16k":
        assert "Fix: free space" in before["refused"]


@pytest.fixture
def small(worker, monkeypatch):
    """Small batches, so that this process commits often."""
    monkeypatch.setattr(worker.capr.search.batches, "ENCODED", 6)
    monkeypatch.setattr(worker.capr.search.batches, "PLAIN", 6)
    monkeypatch.setattr(worker.capr.index.embedded.writer, "BATCH", 4)


def check_continuation(worker, library, committed, batch):
    """Check, with room again, that no committed document is lost and that the same call adds the others."""
    stored = {document.id: document for document in library.documents()}
    assert set(committed) <= stored.keys()
    assert all(document in batch for document in stored.values())
    outcome = library.add(batch)
    assert outcome.problems == []
    assert outcome.added + outcome.unchanged == len(batch)
    check = library.verify()
    assert (check.problems, check.notices) == ([], [])
    for document in batch[::4]:
        assert library.document(document.id) == document
        assert library.search(worker.marker(document.id, 1, 0), 1, mode="lexical")[0].document == document.id


def fail(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("step", ["write", "fsync", "state of vectors", "state of words", "rename"])
@pytest.mark.usefixtures("small")
def test_no_room_for_the_derived_indexes_is_a_warning(worker, memory, monkeypatch, warnings, step, count):
    batch = [worker.make(f"d{number}", 1) for number in range(12)]
    committed, calls = [], [0]
    target, name = {
        "write": (os, "write"),
        "fsync": (os, "fsync"),
        "state of vectors": (capr.index.embedded.vectors, "save_state"),
        "state of words": (capr.index.embedded.words, "save_state"),
        "rename": (capr.index.embedded.vectors.Path, "replace"),
    }[step]
    original = getattr(target, name)

    def failing(*arguments, **named):
        calls[0] += 1
        return original(*arguments, **named) if calls[0] < count else fail()

    with worker.open_library(memory / "library", worker.FakeEncoder()) as library:
        with monkeypatch.context() as patch:
            patch.setattr(target, name, failing)
            library.add(batch, on_commit=committed.extend)
            assert committed == [
                document.id for document in batch
            ]  # the documents are safe, but searches do not find them yet
        assert [message for message in warnings if "catch up later" in message]
        check_continuation(worker, library, committed, batch)
    with worker.open_library(memory / "library") as library:
        assert library.verify().problems == []


@pytest.mark.parametrize("message", ["database or disk is full", "disk I/O error"])
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("query", ["COMMIT", "INSERT", "BEGIN", "UPDATE"])
@pytest.mark.usefixtures("small")
def test_no_room_for_the_documents_is_an_error_with_a_fix(worker, memory, monkeypatch, message, count, query):
    batch = [worker.make(f"d{number}", 1) for number in range(12)]
    committed, calls, armed = [], [0], [True]

    class Full(sqlite3.Connection):
        def execute(self, text, *values):
            self.count(text)
            return super().execute(text, *values)

        def executemany(self, text, *values):
            self.count(text)
            return super().executemany(text, *values)

        def count(self, text):
            if armed[0] and text.startswith(query) and (query != "BEGIN" or "IMMEDIATE" in text):
                calls[0] += 1
                if calls[0] >= count:
                    raise sqlite3.OperationalError(message)

    connect = sqlite3.connect
    with worker.open_library(memory / "library", worker.FakeEncoder()) as library:
        library.add(worker.make("before", 1))
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **b: connect(*a, **{"factory": Full, **b}))
    with worker.open_library(memory / "library") as library:
        with pytest.raises(CaprError, match=r"Fix: free space"):
            library.add(batch, on_commit=committed.extend)
        armed[0] = False
        assert library.document("before") == worker.make("before", 1)
        check_continuation(worker, library, committed, [*batch, worker.make("before", 1)])


def test_no_room_for_a_new_library_is_an_error_and_leaves_none(worker, memory, monkeypatch):
    connect = sqlite3.connect

    class Full(sqlite3.Connection):
        def executescript(self, text):
            raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", lambda *a, **b: connect(*a, **{"factory": Full, **b}))
        with worker.open_library(memory / "library") as library, pytest.raises(CaprError, match=r"Fix: free space"):
            library.add(worker.make("d1", 1))
    with worker.open_library(memory / "library") as library:
        assert library.add(worker.make("d1", 1)).added == 1
        assert library.verify().problems == []


@pytest.mark.parametrize("name", ["link", "open"])
def test_a_folder_that_takes_no_more_files_is_an_error_with_a_fix(worker, memory, monkeypatch, name):
    original = getattr(os, name)

    def failing(path, *arguments, **named):
        return fail() if str(memory) in str(path) else original(path, *arguments, **named)

    with worker.open_library(memory / "library") as library, monkeypatch.context() as patch:
        patch.setattr(os, name, failing)
        with pytest.raises(CaprError, match=r"Fix: "):
            library.add(worker.make("d1", 1))
    with worker.open_library(memory / "library") as library:
        assert library.add(worker.make("d1", 1)).added == 1
        assert library.verify().problems == []


@pytest.mark.parametrize("query", ["VACUUM", "PRAGMA wal_checkpoint", "COMMIT", "DELETE FROM removed"])
@pytest.mark.usefixtures("small")
def test_no_room_to_compact_is_an_error_and_loses_nothing(worker, memory, monkeypatch, query):
    batch = [worker.make(f"d{number}", 1) for number in range(12)]
    armed = [False]

    class Full(sqlite3.Connection):
        def execute(self, text, *values):
            if armed[0] and text.startswith(query):
                raise sqlite3.OperationalError("database or disk is full")
            return super().execute(text, *values)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **b: connect(*a, **{"factory": Full, **b}))
    with worker.open_library(memory / "library", worker.FakeEncoder()) as library:
        library.add([*batch, worker.make("gone", 1)])
        library.remove("gone")
        armed[0] = True
        with pytest.raises(CaprError, match=r"Fix: free space"):
            library.compact()
        armed[0] = False
        assert library.search("cough").hits
        assert library.verify().problems == []
        library.compact()
        check_continuation(worker, library, [document.id for document in batch], batch)

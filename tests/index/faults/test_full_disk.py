"""A full disk: one clear message, nothing that was acknowledged is lost, and with room again it goes on."""

import errno
import os
import sqlite3

import pytest

import capr.index.vectors
import capr.index.words
from capr.documents import CaprError

DOCUMENTS = [[f"d{number}", 1] for number in range(40)]


def check(told):
    """What a process has told that met a full disk and then had room again."""
    assert [line["crashed"] for line in told if "crashed" in line] == []
    before, after = told[0], told[-1]
    (there,) = [line["there"] for line in told if "there" in line]
    assert before["refused"] is None or "Fix: " in before["refused"], before
    assert before["refused"] or before["warned"] or len(before["kept"]) == len(DOCUMENTS)
    assert all("Fix: " in line["search"] for line in told if "search" in line)
    assert set(before["kept"]) <= set(there)
    assert (after["wrong"], after["missing"]) == ([], [])
    assert (after["problems"], after["notices"]) == ([], [])
    assert after["found"] == [DOCUMENTS[-1][0]]
    return before


@pytest.mark.parametrize("same", [True, False], ids=["goes-on", "runs-again"])
@pytest.mark.parametrize("encoder", [None, "fake-a"])
@pytest.mark.parametrize("limit", [1_000, 20_000, 60_000, 100_000, 200_000, 400_000])
def test_where_files_cannot_grow_nothing_is_lost_and_it_goes_on_later(starter, memory, faults, limit, encoder, same):
    if (limit in (20_000, 100_000) or not encoder) and faults < 100:
        pytest.skip("only with CAPR_FAULTS=100")
    given = {"path": memory, "documents": DOCUMENTS, "encoder": encoder, "same": same}
    check(starter.start("fill", limit=limit, **given).finished())


@pytest.mark.parametrize("same", [True, False], ids=["goes-on", "runs-again"])
@pytest.mark.parametrize("encoder", [None, "fake-a"])
@pytest.mark.parametrize("size", ["16k", "100k", "200k", "300k", "400k", "600k", "800k", "1200k"])
def test_on_a_disk_that_is_full_nothing_is_lost_and_it_goes_on_later(starter, tmp_path, faults, size, encoder, same):
    if (size in ("100k", "300k", "600k") or not encoder) and faults < 100:
        pytest.skip("only with CAPR_FAULTS=100")
    (asked,) = starter.start("mount", path=tmp_path).finished()
    if asked["refused"]:
        pytest.skip(f"small disks are not permitted here ({asked['refused']})")
    given = {"path": tmp_path, "documents": DOCUMENTS, "encoder": encoder, "same": same}
    before = check(starter.start("fill", tmpfs=size, **given).finished())
    if size == "16k":
        assert "Fix: make room" in before["refused"]


@pytest.fixture
def small(worker, monkeypatch):
    """Many commits in this process, too."""
    monkeypatch.setattr(worker.capr.search.library, "BATCH", 6)
    monkeypatch.setattr(worker.capr.search.library, "WITHOUT", 6)
    monkeypatch.setattr(worker.capr.index.writer, "BATCH", 4)


def goes_on(worker, library, kept, given):
    """After room was made: nothing is lost, the same call goes on, and all is well."""
    there = {document.id: document for document in library.documents()}
    assert set(kept) <= there.keys()
    assert all(document in given for document in there.values())
    outcome = library.add(given)
    assert outcome.problems == []
    assert outcome.added + outcome.unchanged == len(given)
    check = library.verify()
    assert (check.problems, check.notices) == ([], [])
    for document in given[::4]:
        assert library.document(document.id) == document
        assert library.search(worker.marker(document.id, 1, 0), 1, mode="lexical")[0].document == document.id


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("place", ["write", "fsync", "state of vectors", "state of words", "rename"])
@pytest.mark.usefixtures("small")
def test_no_room_for_the_derived_indexes_is_a_warning(worker, memory, monkeypatch, warned, place, count):
    given = [worker.make(f"d{number}", 1) for number in range(12)]
    kept, calls = [], [0]
    target, name = {
        "write": (os, "write"),
        "fsync": (os, "fsync"),
        "state of vectors": (capr.index.vectors, "save_state"),
        "state of words": (capr.index.words, "save_state"),
        "rename": (capr.index.vectors.Path, "replace"),
    }[place]
    real = getattr(target, name)

    def failing(*arguments, **named):
        calls[0] += 1
        return real(*arguments, **named) if calls[0] < count else full()

    with worker.opened(memory / "library", worker.Fake()) as library:
        with monkeypatch.context() as patch:
            patch.setattr(target, name, failing)
            library.add(given, on_commit=kept.extend)
            assert kept == [document.id for document in given]  # they are safe, and only cannot be found yet
        assert [message for message in warned if "catch up later" in message]
        goes_on(worker, library, kept, given)
    with worker.opened(memory / "library") as library:
        assert library.verify().problems == []


@pytest.mark.parametrize("said", ["database or disk is full", "disk I/O error"])
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("query", ["COMMIT", "INSERT", "BEGIN", "UPDATE"])
@pytest.mark.usefixtures("small")
def test_no_room_for_the_documents_is_an_error_with_what_to_do(worker, memory, monkeypatch, said, count, query):
    given = [worker.make(f"d{number}", 1) for number in range(12)]
    kept, calls, armed = [], [0], [True]

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
                    raise sqlite3.OperationalError(said)

    real = sqlite3.connect
    with worker.opened(memory / "library", worker.Fake()) as library:
        library.add(worker.make("before", 1))
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **b: real(*a, **{"factory": Full, **b}))
    with worker.opened(memory / "library") as library:
        with pytest.raises(CaprError, match=r"Fix: make room"):
            library.add(given, on_commit=kept.extend)
        armed[0] = False
        assert library.document("before") == worker.make("before", 1)
        goes_on(worker, library, kept, [*given, worker.make("before", 1)])


def test_no_room_for_a_new_library_is_an_error_and_leaves_none(worker, memory, monkeypatch):
    real = sqlite3.connect

    class Full(sqlite3.Connection):
        def executescript(self, text):
            raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", lambda *a, **b: real(*a, **{"factory": Full, **b}))
        with worker.opened(memory / "library") as library, pytest.raises(CaprError, match=r"Fix: make room"):
            library.add(worker.make("d1", 1))
    with worker.opened(memory / "library") as library:
        assert library.add(worker.make("d1", 1)).added == 1
        assert library.verify().problems == []


@pytest.mark.parametrize("place", ["link", "open"])
def test_a_folder_that_takes_no_more_files_is_an_error_with_what_to_do(worker, memory, monkeypatch, place):
    real = getattr(os, place)

    def failing(path, *given, **named):
        return full() if str(memory) in str(path) else real(path, *given, **named)

    with worker.opened(memory / "library") as library, monkeypatch.context() as patch:
        patch.setattr(os, place, failing)
        with pytest.raises(CaprError, match=r"Fix: "):
            library.add(worker.make("d1", 1))
    with worker.opened(memory / "library") as library:
        assert library.add(worker.make("d1", 1)).added == 1
        assert library.verify().problems == []


@pytest.mark.parametrize("query", ["VACUUM", "PRAGMA wal_checkpoint", "COMMIT", "DELETE FROM removed"])
@pytest.mark.usefixtures("small")
def test_no_room_to_compact_is_an_error_and_loses_nothing(worker, memory, monkeypatch, query):
    given = [worker.make(f"d{number}", 1) for number in range(12)]
    armed = [False]

    class Full(sqlite3.Connection):
        def execute(self, text, *values):
            if armed[0] and text.startswith(query):
                raise sqlite3.OperationalError("database or disk is full")
            return super().execute(text, *values)

    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **b: real(*a, **{"factory": Full, **b}))
    with worker.opened(memory / "library", worker.Fake()) as library:
        library.add([*given, worker.make("gone", 1)])
        library.remove("gone")
        armed[0] = True
        with pytest.raises(CaprError, match=r"Fix: make room"):
            library.compact()
        armed[0] = False
        assert library.search("cough").hits
        assert library.verify().problems == []
        library.compact()
        goes_on(worker, library, [document.id for document in given], given)

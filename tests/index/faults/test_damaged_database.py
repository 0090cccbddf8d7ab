"""The database is damaged or not a database: the error says how to fix it."""

import os

import numpy as np
import pytest
from damages import CALLS, DAMAGES, restore, run_calls

from capr.documents import CaprError


@pytest.mark.parametrize("length", ["0", "1", "100", "a page", "half", "all but a page"])
def test_the_error_about_a_truncated_database_has_a_fix(starter, copy, length):
    file = copy / "library.db"
    size = file.stat().st_size
    lengths = {"a page": 8192, "half": size // 2, "all but a page": size - 8192}
    os.truncate(file, lengths[length] if length in lengths else int(length))
    for line in run_calls(starter, copy):
        assert "Fix: " in line.get("refused", ""), line


def test_verify_reports_a_database_without_its_last_bytes(starter, copy):
    for count in (1, 100, 4000):
        os.truncate(copy / "library.db", (copy / "library.db").stat().st_size - count)
        for line in run_calls(starter, copy, calls=CALLS[:3]):
            assert line["call"] != "verify" or line.get("outcome") or "Fix: " in line.get("refused", ""), line


@pytest.mark.parametrize("garbage", [b"garbage!" * 12, bytes(100), b"\xff" * 16, b"SQLite format 3\x00" + b"\xff" * 84])
def test_the_error_about_a_database_with_another_header_has_a_fix(starter, copy, garbage):
    file = copy / "library.db"
    file.write_bytes(garbage + file.read_bytes()[len(garbage) :])
    for line in run_calls(starter, copy):
        assert "Fix: " in line.get("refused", ""), line


def test_the_error_about_a_file_that_is_not_a_database_has_a_fix(starter, copy):
    (copy / "library.db").write_text("These are my notes, and not a database.\n" * 1000)
    for line in run_calls(starter, copy):
        assert "Fix: " in line.get("refused", ""), line


def test_the_error_about_a_database_of_another_program_has_a_fix(worker, starter, copy):
    (copy / "library.db").unlink()
    database = worker.sqlite3.connect(copy / "library.db")
    database.execute("CREATE TABLE other (value)")
    database.close()
    for line in run_calls(starter, copy):
        assert "Fix: " in line.get("refused", ""), line


@pytest.mark.parametrize("damage", ["random", "zeros", "bit"])
def test_damaged_pages_of_the_database_are_reported_and_crash_nothing(worker, starter, sound, copy, faults, damage):
    file = copy / "library.db"
    pages = file.stat().st_size // 8192
    generator = np.random.default_rng(7)
    texts = {worker.make(f"d{number}", 1).text for number in range(12)}
    crashed, silent, wrong = {}, [], []
    for page in range(1, pages) if faults >= 100 else range(1, pages, 2):
        data = bytearray(file.read_bytes())
        if damage == "bit":
            for offset in generator.integers(0, 8192, 20):
                data[page * 8192 + int(offset)] ^= 1 << int(generator.integers(0, 8))
        else:
            new = bytes(8192) if damage == "zeros" else generator.bytes(8192)
            data[page * 8192 : (page + 1) * 8192] = new
        file.write_bytes(data)
        lines = starter.start("attempt", path=copy, calls=CALLS[:3]).finish(timeout=60)
        for line in lines:
            if "crashed" in line:
                crashed[f"page {page}, {line['call']}"] = line["crashed"].strip().splitlines()[-1]
            elif line["call"] == "verify" and line.get("outcome") == [] and damage != "bit":
                silent.append(page)
            elif line["call"] == "search" and damage != "bit":
                hits = line.get("outcome", [])
                wrong += [text for _, text in hits if not any(text in whole for whole in texts)]
        restore(sound, copy)
    assert crashed == {}
    assert wrong == []
    with worker.open_library(copy) as library:  # a free page may contain anything
        (free,) = library.index.store.database.execute("PRAGMA freelist_count").fetchone()
    assert len(silent) <= free


def test_a_damaged_log_loses_only_unfinished_changes(worker, starter, memory):
    path = memory / "library"
    child = starter.start(
        "change", path=path, changes=[["add", [[f"d{n}", 1] for n in range(9)]]], kill=["after commit", 3]
    )
    child.wait()
    log = path / "library.db-wal"
    assert log.stat().st_size
    for damage in ("last-bit", "middle-bit", "first-bit"):
        DAMAGES[damage](log)
        for line in run_calls(starter, path, calls=[("search", "cough"), ("verify",)]):
            assert line.get("outcome") is not None or "Fix: " in line["refused"]
        if not log.exists():
            break


@pytest.mark.parametrize("call", ["search", "stats", "verify", "document", "remove", "encode", "compact"])
@pytest.mark.parametrize("content", ["missing", "a file", "an empty folder", "another folder", "a folder as database"])
def test_the_error_about_a_path_that_is_not_a_library_has_a_fix(worker, tmp_path, content, call):
    path = tmp_path / "library"
    if content == "a file":
        path.write_text("text")
    elif content != "missing":
        path.mkdir()
    if content == "another folder":
        (path / "notes.txt").write_text("text")
    if content == "a folder as database":
        (path / "library.db").mkdir()
    arguments = {"search": ["cough"], "document": ["d1"], "remove": ["d1"], "encode": [worker.FakeEncoder()]}
    with pytest.raises(CaprError, match=r"Fix: "), worker.open_library(path) as library:
        getattr(library, call)(*arguments.get(call, []))
    assert content != "missing" or not path.exists()


@pytest.mark.parametrize("content", ["a file", "below a file", "a folder as database", "a dangling link"])
def test_a_library_cannot_be_created_in_the_place_of_something_else(worker, tmp_path, content):
    path = tmp_path / "library"
    if content == "a dangling link":
        path.symlink_to(tmp_path / "nowhere" / "deep")
    elif content == "a folder as database":
        (path / "library.db").mkdir(parents=True)
    else:
        path.write_text("text")
        path = path / "below" if content == "below a file" else path
    with pytest.raises(CaprError, match=r"Fix: "), worker.open_library(path) as library:
        library.add(worker.make("d1", 1))
